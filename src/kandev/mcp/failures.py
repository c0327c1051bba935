"""What an agent hears of an error: `[CODE] sentence`.

The codes are those of the public doors; an agent reads the text, so code and sentence stand in it.
"""

import json
import secrets
from typing import Final

import structlog

from kandev.core import errors
from kandev.wire.gateway import BadPayload, Malformed

log = structlog.get_logger(__name__)


class UnknownAction(errors.Refusal):
    """Agents have no such action."""


CODES: Final[tuple[tuple[type[Exception], str], ...]] = (
    (Malformed, "BAD_REQUEST"),
    (BadPayload, "VALIDATION_ERROR"),
    (UnknownAction, "UNKNOWN_ACTION"),
    *errors.CODES,
)


def texts(error: Exception, tool: str) -> tuple[str, ...]:
    """The sentence, and behind it what a program may want to know of the refusal, as JSON."""
    details = error.details if isinstance(error, errors.KandevError) else None
    sentence = told(error, tool)
    return (sentence, json.dumps(details, ensure_ascii=False)) if details else (sentence,)


def told(error: Exception, tool: str) -> str:
    """What has no place in the table is logged with an error id, and only that id is told; where the machine
    is in trouble, also the sentence that says which."""
    for kind, code in CODES:
        if isinstance(error, kind):
            return f"[{code}] {error}"
    error_id = secrets.token_hex(6)
    log.error("tool failed", error_id=error_id, tool=tool, exc_info=error)
    if isinstance(error, errors.Unavailable):
        return f"[INTERNAL_ERROR] {error.message} Kandev's log has it under error id {error_id}."
    sentence = "Something went wrong inside Kandev; its log has more under error id"
    return f"[INTERNAL_ERROR] {sentence} {error_id}."

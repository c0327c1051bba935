"""The one table from errors to codes, and from codes to HTTP status.

Not here: which error a use case raises (`core.errors` says whose fault each is).
"""

import secrets
from typing import Final

import structlog

from kandev.core import errors
from kandev.wire.gateway import BadPayload, Code, ErrorObject, Malformed

log = structlog.get_logger(__name__)

STATUS: Final[dict[Code, int]] = {
    "BAD_REQUEST": 400,
    "UNAUTHORIZED": 401,
    "FORBIDDEN": 403,
    "NOT_FOUND": 404,
    "UNKNOWN_ACTION": 404,
    "CONFLICT": 409,
    "VALIDATION_ERROR": 422,
    "INTERNAL_ERROR": 500,
}


class BadRequest(errors.Refusal):
    """What came in cannot be read as a request."""


class UnknownAction(errors.Refusal):
    """The catalogue has no such action."""


class Unauthorized(errors.Refusal):
    """The access token is missing or wrong."""


class Leaving(Exception):
    """The backend ends before the answer is there; what was asked for may still be done."""


# First match counts, so a class stands before the ones it derives from.
CODES: Final[tuple[tuple[type[Exception], Code], ...]] = (
    (Malformed, "BAD_REQUEST"),
    (BadRequest, "BAD_REQUEST"),
    (BadPayload, "VALIDATION_ERROR"),
    (UnknownAction, "UNKNOWN_ACTION"),
    (Unauthorized, "UNAUTHORIZED"),
    *errors.CODES,
)


def error_object(error: Exception, action: str) -> ErrorObject:
    """What the asker hears. What has no place in the table is logged with an error id, and only that id is
    told; where the machine is in trouble (a full disk), also the sentence that says which and the way out."""
    for kind, code in CODES:
        if isinstance(error, kind):
            details = error.details if isinstance(error, errors.KandevError) else None
            return ErrorObject(code=code, message=str(error), details=details)
    error_id = secrets.token_hex(6)
    if isinstance(error, Leaving):
        log.warning("ended before an answer", error_id=error_id, action=action)
        message = f"Kandev ended before this was answered; look what became of it (error id {error_id})."
    elif isinstance(error, errors.Unavailable):
        cause = repr(_root(error))
        log.error("request failed", error_id=error_id, action=action, error=error.message, cause=cause)
        message = f"{error.message} Kandev's log has it under error id {error_id}."
    else:
        log.error("request failed", error_id=error_id, action=action, exc_info=error)
        message = f"Something went wrong inside Kandev; its log has more under error id {error_id}."
    return ErrorObject(code="INTERNAL_ERROR", message=message, details={"error_id": error_id})


def _root(error: BaseException) -> BaseException:
    """What it began with, in the driver's own words."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error

"""agentctl's log: one JSON object a line on stderr."""

import json
import logging
import sys
from datetime import UTC, datetime


class JsonLines(logging.Formatter):
    """One line, one object; `extra={"ids": {…}}` become members of it."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= getattr(record, "ids", {})
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


GONE = "ASGI callable returned without completing handshake."
"""uvicorn's word for a client that went away before its WebSocket stood: the backend gives up the lane of a
launch that has failed. No error of ours."""


def told(record: logging.LogRecord) -> bool:
    """Whether a line of uvicorn's is written."""
    return record.getMessage() != GONE


def set_up(level: str) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.getLogger("uvicorn.access").disabled = True
    logging.getLogger("uvicorn.error").addFilter(told)
    # Of each frame to a reader that has just gone away it says so.
    logging.getLogger("asyncio").setLevel(logging.ERROR)

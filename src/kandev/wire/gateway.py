"""Frames and error objects of the public doors, and how a payload is read.

A frame is one JSON object per WebSocket text message: `{id, type, action, payload, timestamp}`. The
payloads stand in `gateway_board` and `gateway_sessions`. Not here: which code an error gets
(`gateway.errors`).
"""

import re
from typing import Any, Final, Literal, TypeVar

import msgspec

FrameType = Literal["request", "response", "notification", "error"]
Code = Literal[
    "BAD_REQUEST",
    "VALIDATION_ERROR",
    "UNAUTHORIZED",
    "FORBIDDEN",
    "NOT_FOUND",
    "CONFLICT",
    "UNKNOWN_ACTION",
    "INTERNAL_ERROR",
]
P = TypeVar("P", bound=msgspec.Struct)


class Frame(msgspec.Struct, frozen=True, kw_only=True):
    """What travels over the WebSocket. `id` and `action` are empty where they are not known."""

    id: str = ""
    type: FrameType
    action: str = ""
    payload: dict[str, Any]
    timestamp: str


class ErrorObject(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The error payload: one sentence, and data for programs."""

    code: Code
    message: str
    details: dict[str, Any] | None = None


class Malformed(ValueError):
    """Not JSON, or not an object (BAD_REQUEST)."""


class BadPayload(ValueError):
    """An object of the wrong shape (VALIDATION_ERROR): the sentence names the member."""


def read_object(text: str | bytes, what: str) -> dict[str, Any]:
    """The JSON object in `text`; `what` names it in the sentence of Malformed."""
    try:
        found = msgspec.json.decode(text)
    except RecursionError:
        raise Malformed(f"{what} is nested too deeply.") from None
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError) as error:
        raise Malformed(f"{what} is not JSON: {error}.") from None
    if not isinstance(found, dict):
        raise Malformed(f"{what} must be a JSON object.")
    return found


def read_payload(payload: dict[str, Any], shape: type[P]) -> P:
    """The payload as its struct. Raises BadPayload with a sentence that names what is wrong."""
    try:
        return msgspec.convert(payload, shape)
    except msgspec.ValidationError as error:
        raise BadPayload(_sentence(str(error))) from None


_WORDS: Final = {
    "str": "a string",
    "int": "an integer",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}
_PLACE: Final = re.compile(r"(?s)^(?P<what>.*?)(?: - at `(?P<key>key in )?\$(?P<path>.*)`)?$")
_UNKNOWN: Final = re.compile(r"Object contains unknown field `(.*)`$", re.DOTALL)
_MISSING: Final = re.compile(r"Object missing required field `(.*)`$")
_TYPE: Final = re.compile(r"Expected `([^`]+)`, got `([^`]+)`$")
_LENGTH: Final = re.compile(r"Expected `(str|array)` of length (.*)$")
_RANGE: Final = re.compile(r"Expected `(?:int|float)` (.*)$")


def _sentence(error: str) -> str:
    match = _PLACE.match(error)
    what, path = (match["what"], (match["path"] or "").lstrip(".")) if match else (error, "")
    inside = f" in `{path}`" if path else ""
    if found := _UNKNOWN.match(what):
        return f"Unknown field `{found[1]}`{inside}."
    if found := _MISSING.match(what):
        return f"The field `{found[1]}`{inside} is missing."
    field = f"The field `{path}`" if path else "The payload"
    if found := _TYPE.match(what):
        return f"{field} must be {_kinds(found[1])}, not {_kinds(found[2])}."
    if found := _LENGTH.match(what):
        unit = "characters" if found[1] == "str" else "members"
        return f"{field} must have {_bound(found[2])} {unit}."
    if found := _RANGE.match(what):
        return f"{field} must be {_bound(found[1])}."
    return f"{field} cannot be accepted: {what[:1].lower()}{what[1:]}."


def _kinds(types: str) -> str:
    return " or ".join(_WORDS.get(kind, kind) for kind in types.split(" | "))


def _bound(text: str) -> str:
    signs = {">=": "at least", "<=": "at most", ">": "more than", "<": "less than", "==": "exactly"}
    sign, _, number = text.partition(" ")
    return f"{signs.get(sign, sign)} {number}"

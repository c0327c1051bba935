"""Payloads and objects in one line each, as the pages show them: `{id, name?, limit?: int}`.

Not here: where the lines stand (`generated`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import NODEFAULT, UNSET, inspect

from kandev.core import board, payloads, records
from kandev.core.session import Entry, Launch, Session, Turn, TurnRef
from kandev.core.transcript import Message

AT = "2026-01-31T09:15:00.123Z"
REF = TurnRef("session_1.1", 1)


def payload_shape(struct: type) -> str:
    """The members of a request: `?` may be left out; a type where it is no string; a default where it says
    something."""
    info = inspect.type_info(struct)
    assert isinstance(info, inspect.StructType)
    return _struct(info)


def _struct(info: inspect.StructType) -> str:
    ordered = sorted(info.fields, key=lambda f: not f.required)
    return "{" + ", ".join(map(_member, ordered)) + "}"


def _member(member: inspect.Field) -> str:
    kind = _kind(member.type)
    silent = member.default in (NODEFAULT, UNSET, None) or kind in ("bool", "object")
    shown = "" if silent else f" = {member.default}"
    return f"{member.encode_name}{'' if member.required else '?'}{': ' + kind if kind else ''}{shown}"


def _kind(kind: inspect.Type) -> str:
    match kind:
        case inspect.UnionType(types=types):
            said = [_kind(t) for t in types if not isinstance(t, inspect.NoneType)]
            return " or ".join(word for word in said if word)
        case inspect.LiteralType(values=values):
            return "/".join(str(v) for v in values)
        case inspect.ListType(item_type=item):
            return f"[{_kind(item) or 'string'}]"
        case inspect.StructType():
            return _struct(kind)
    words: dict[type, str] = {
        inspect.IntType: "int",
        inspect.FloatType: "number",
        inspect.BoolType: "bool",
        inspect.DictType: "object",
    }
    return words.get(type(kind), "")


def object_shapes() -> Mapping[str, str]:
    """Every object that answers and notifications hold, by its name."""
    made: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
        "workspace": _twice(payloads.workspace, board.Workspace("w", "n", AT, AT)),
        "repository": _twice(payloads.repository, board.Repository("r", "w", "n", "/p", "main", AT, AT)),
        "step": _twice(payloads.step, board.Step("s", "f", "n", 0)),
        "workflow": _twice(payloads.workflow, board.Workflow("f", "w", "n", "kanban", (), AT, AT)),
        "profile": (_profile(full=False), _profile(full=True)),
        "task": (_task(full=False), _task(full=True)),
        "session": (_session(full=False), _session(full=True)),
        "turn": (_turn(full=False), _turn(full=True)),
        "message": _twice(payloads.message, Message("m", "s", None, "user", "message", "", {}, 1, AT)),
        "entry": (_entry(None), _entry("t")),
    }
    return {name: _object(least, most) for name, (least, most) in made.items()}


def _twice(shape: Callable[[Any], dict[str, Any]], row: object) -> tuple[dict[str, Any], dict[str, Any]]:
    return shape(row), shape(row)


def _object(least: Mapping[str, Any], most: Mapping[str, Any]) -> str:
    always = [name for name in most if name in least]
    sometimes = [f"{name}?" for name in most if name not in least]
    return "{" + ", ".join([*always, *sometimes]) + "}"


def _profile(*, full: bool) -> dict[str, Any]:
    more: dict[str, Any] = (
        {"model": "m", "mode": "m", "auth_method": "a", "agent": "mock", "cancel_acknowledge_s": 5.0}
        if full
        else {}
    )
    return payloads.profile(board.Profile("p", "n", "acp", ("c",), AT, AT, **more))


def _task(*, full: bool) -> dict[str, Any]:
    names = ("parent_id", "agent_profile_id", "external_id", "archived_at", "error")
    more: dict[str, Any] = dict.fromkeys(names, "x") if full else {}
    if full:
        more["pending_move"] = board.PendingMove("s", "x", 0)
    row = board.Task("t", "w", "f", "s", "title", "", "TODO", "medium", 0, AT, AT, **more)
    return payloads.task(row)


def _session(*, full: bool) -> dict[str, Any]:
    value, extra = Session("session_1"), dict[str, Any]()
    if full:
        turn = Turn(REF, (Entry("e"),))
        value = Session("session_1", launch=Launch.READY, executions=1, turn=turn, parked="why")
        extra = dict.fromkeys(("waiting_for", "error", "agent"), "x")
    row = records.SessionRecord("session_1", "t", "w", "n", "p", True, value, "CREATED", AT, AT, **extra)
    if not full:
        return payloads.session(row, queue_max=10)
    place = board.Worktree("t", "/p", "b")
    shown = payloads.session(row, queue_max=10, turn=_turn_row(full=False), worktree=place)
    return {**shown, "questions": []}


def _turn_row(*, full: bool) -> records.TurnRecord:
    names = ("own_turn_id", "ended_at", "stop_reason", "cause", "error")
    more: dict[str, Any] = dict.fromkeys(names, "x") if full else {}
    return records.TurnRecord("id", "session_1", "session_1.1", 1, "active", AT, **more)


def _turn(*, full: bool) -> dict[str, Any]:
    return payloads.turn_payload(_turn_row(full=full))


def _entry(sender: str | None) -> dict[str, Any]:
    senders = {"sender_task_id": sender, "sender_session_id": sender}
    row = records.EntryRecord("e", "s", "t", "m", "text", "user", 1, "queued", AT, AT, **senders)
    return payloads.entry(row, 0, sender)

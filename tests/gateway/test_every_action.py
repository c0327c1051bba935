"""What holds for every action of the catalogue, whatever it does."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kandev.gateway.catalogue import ACTIONS, MCP
from tests.gateway.house import House

HTTP_ACTIONS = [name for name, action in ACTIONS.items() if not action.stream]
NUMBER = 12.5  # wrong for every member but one that is a number of seconds
LISTS: dict[str, Any] = {
    "command": ["x"],
    "step_ids": [],
    "entry_ids": [],
    "answers": [],
    "auto_run": True,
    "workflow": {"version": 1, "name": "x", "steps": [{"name": "x"}]},
}


def needed(action: str) -> dict[str, Any]:
    """A payload of the right shape with what is required."""
    fields = msgspec.structs.fields(ACTIONS[action].payload)
    return {f.name: LISTS.get(f.name, "x") for f in fields if f.required}


def members(action: str) -> list[str]:
    return [f.name for f in msgspec.structs.fields(ACTIONS[action].payload)]


def test_no_action_of_agents_is_in_the_public_catalogue() -> None:
    assert not [name for name in ACTIONS if name.startswith(MCP)]


@pytest.mark.proves("BAD-unknown-field")
@pytest.mark.parametrize("action", sorted(ACTIONS))
async def test_an_unknown_field_is_named(house: House, action: str) -> None:
    message = await house.refused(action, "VALIDATION_ERROR", **needed(action), surprise=1)
    assert message == "Unknown field `surprise`."


@pytest.mark.proves("BAD-wrong-type")
@pytest.mark.parametrize("action", sorted(ACTIONS))
async def test_a_wrong_type_is_named_and_changes_nothing(house: House, action: str) -> None:
    for member in members(action):
        if member == "cancel_acknowledge_s":
            continue
        payload = {**needed(action), member: NUMBER}
        message = await house.refused(action, "VALIDATION_ERROR", **payload)
        assert f"`{member}`" in message
    for member in needed(action):
        payload = {k: v for k, v in needed(action).items() if k != member}
        message = await house.refused(action, "VALIDATION_ERROR", **payload)
        assert message == f"The field `{member}` is missing."
    assert house.heard.all == []


@pytest.mark.proves("BAD-no-traceback")
@pytest.mark.parametrize("action", HTTP_ACTIONS)
async def test_no_odd_value_is_an_internal_error(house: House, action: str) -> None:
    for member in members(action):
        for odd in ("\0", "../..", "é" * 150, "🦊", [], {}, True, 10**30, -1, ["\0"], {"\0": "\0"}):
            status, body = await house.post(action, {**needed(action), member: odd})
            assert status < 500, (member, odd, body)

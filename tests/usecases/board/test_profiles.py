"""Agents and their profiles, asked for at the HTTP door."""

from __future__ import annotations

from typing import Any

import pytest

from kandev.core.board import Profile
from tests.gateway.house import House

COMMAND = ["fox", "acp"]


async def stored(house: House, id: str) -> Profile:
    found = await house.ctx.store.read(lambda tx: tx.profiles.get(id))
    assert found is not None
    return found


@pytest.mark.proves("ACT-agent.list")
async def test_known_agents_are_listed_found_or_not(house: House) -> None:
    agents = (await house.ok("agent.list"))["agents"]
    assert [(a["name"], a["found"]) for a in agents] == [("mock", True), ("fox", True), ("owl", False)]
    assert (agents[1]["version"], agents[1]["command"]) == ("1.2", COMMAND)
    assert "version" not in agents[2]
    assert agents[2]["install"] == "Install owl."


@pytest.mark.proves("ACT-agent.profile.create", "ACT-agent.profile.get", "ACT-agent.profile.list")
async def test_a_profile_is_created_and_read(house: House) -> None:
    made = await house.ok("agent.profile.create", name="Fox", protocol="acp", command=COMMAND, model="big")
    assert (made["name"], made["command"], made["model"], made["auto_approve"]) == (
        "Fox",
        COMMAND,
        "big",
        False,
    )
    assert await house.ok("agent.profile.get", id=made["id"]) == made
    assert await house.ok("agent.profile.list") == {"profiles": [made]}


@pytest.mark.proves("ACT-agent.profile.list", "ACT-agent.profile.get")
async def test_secrets_are_written_and_never_read_back(house: House) -> None:
    server = {"name": "s", "url": "http://x", "headers": [{"name": "Authorization", "value": "hidden-3"}]}
    made = await house.ok(
        "agent.profile.create",
        name="Fox",
        command=COMMAND,
        env={"API_KEY": "hidden-1", "OTHER": "hidden-2", "PLAIN": "shown"},
        secret_env=["OTHER"],
        mcp_servers=[server],
    )
    assert made["env"] == {"API_KEY": "***", "OTHER": "***", "PLAIN": "shown"}
    assert made["mcp_servers"][0]["headers"] == [{"name": "Authorization", "value": "***"}]
    listed = await house.ok("agent.profile.list")
    told = [n.payload for n in house.heard.all]
    assert "hidden" not in f"{listed} {told}"
    assert (await stored(house, made["id"])).env["API_KEY"] == "hidden-1"


@pytest.mark.proves("ACT-agent.profile.update", "NOTE-catalogue")
async def test_stars_keep_a_secret_and_what_is_left_out_stays(house: House) -> None:
    await house.ok("workspace.create", name="Shop")
    server = {"name": "s", "command": "c", "env": {"A": "hidden-3", "B": "hidden-4"}}
    made = await house.ok(
        "agent.profile.create",
        name="Fox",
        command=COMMAND,
        env={"MY_TOKEN": "hidden-1"},
        model="big",
        mcp_servers=[server],
    )
    changed = await house.ok(
        "agent.profile.update",
        id=made["id"],
        env={"MY_TOKEN": "***", "PASSWORD": "hidden-2"},
        mcp_servers=[{**server, "env": {"A": "***", "B": "fresh"}}],
        model=None,
    )
    assert "model" not in changed
    assert changed["command"] == COMMAND
    row = await stored(house, made["id"])
    assert row.env == {"MY_TOKEN": "hidden-1", "PASSWORD": "hidden-2"}
    assert row.mcp_servers[0]["env"] == {"A": "hidden-3", "B": "fresh"}
    renamed = await house.ok("agent.profile.update", id=made["id"], name="Fox 2")
    assert renamed["name"] == "Fox 2"
    assert (await stored(house, made["id"])).env == row.env
    assert house.heard.actions().count("agent.profile.changed") == 3


@pytest.mark.proves("BAD-wrong-type")
@pytest.mark.parametrize(
    ("member", "value", "named"),
    [
        ("command", [], "command"),
        ("command", [" "], "command"),
        ("command", "fox acp", "command"),
        ("command", ["a\0b"], "command"),
        ("env", {"A=B": "x"}, "A=B"),
        ("env", {"A": 1}, "env"),
        ("env", {"MY_KEY": "***"}, "MY_KEY"),
        ("protocol", "telnet", "protocol"),
        ("cancel_acknowledge_s", -1, "cancel_acknowledge_s"),
        ("mcp_servers", [{"url": "http://x"}], "name"),
        ("mcp_servers", [{"name": "s"}], "'s'"),
        ("mcp_servers", [{"name": "s", "url": "u", "headers": 5}], "'s'"),
        ("mcp_servers", [{"name": "s", "url": "u", "headers": {"H": "***"}}], "'H'"),
    ],
)
async def test_a_profile_that_cannot_be_is_refused_and_the_member_named(
    house: House, member: str, value: Any, named: str
) -> None:
    payload = {"name": "Fox", "command": COMMAND, member: value}
    message = await house.refused("agent.profile.create", "VALIDATION_ERROR", **payload)
    assert named in message
    assert await house.ok("agent.profile.list") == {"profiles": []}


@pytest.mark.proves("ACT-agent.profile.delete")
async def test_a_profile_is_deleted_unless_a_session_uses_it(house: House) -> None:
    _, session_id = await house.started("sleep 30")
    [profile] = (await house.ok("agent.profile.list"))["profiles"]
    await house.refused("agent.profile.delete", "CONFLICT", id=profile["id"])
    await house.ok("session.stop", session_id=session_id)
    assert await house.ok("agent.profile.delete", id=profile["id"]) == {"success": True}

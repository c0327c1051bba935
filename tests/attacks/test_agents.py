"""Hostile agents: what they say stays bounded, what they start is ended."""

import json
import os
import signal
import uuid
from pathlib import Path
from typing import Any

import pytest

from kandev.agentctl.adapters.acp.calls import INPUTS_BYTES, ToolCalls
from kandev.agentctl.adapters.base import PermissionAsk
from kandev.agentctl.attribution import Identity
from kandev.agentctl.grouping import own_group
from kandev.agentctl.permissions import Permissions
from kandev.agentctl.tasks import Tasks
from tests.attacks.scenes import hostile
from tests.e2e.kandev import Kandev
from tests.e2e.scenes import agent_spoke, get, said, turns_over, until_true


def test_inputs_of_tool_calls_are_kept_within_a_bound() -> None:
    calls = ToolCalls()
    size = INPUTS_BYTES // 10
    for n in range(100):
        calls.seen({"toolCallId": f"c{n}", "title": "Write", "rawInput": "x" * size})
    kept = [calls.get(f"c{n}").raw_input for n in range(100)]
    assert sum(len(value) for value in kept if value) <= INPUTS_BYTES
    assert kept[99] is not None and calls.get("c0").title == "Write"


async def test_an_agents_endless_error_is_told_in_a_sentence(kandev: Kandev) -> None:
    _, session_id = await kandev.session("say x", agent_profile_id=await hostile(kandev, "big-error"))
    async with kandev.watching(session_id) as events:
        await events.state("FAILED")
    session = await get(kandev, session_id)
    assert "eeee" in session["error"] and len(json.dumps(session)) < 10_000


async def test_an_agents_endless_stop_reason_is_told_in_a_sentence(kandev: Kandev) -> None:
    _, session_id = await kandev.session("reason 5000000", agent_profile_id=await hostile(kandev))
    async with kandev.watching(session_id) as events:
        ended = await turns_over(events)
    assert len(ended["stop_reason"]) < 10_000


async def test_an_endless_conversation_id_is_refused(kandev: Kandev) -> None:
    _, session_id = await kandev.session("say x", agent_profile_id=await hostile(kandev, "big-id"))
    async with kandev.watching(session_id) as events:
        await events.state("FAILED")
    assert "sessionId" in (await get(kandev, session_id))["error"]


async def test_a_flood_about_other_conversations_is_told_a_few_times(kandev: Kandev) -> None:
    _, session_id = await kandev.session("foreign 500", agent_profile_id=await hostile(kandev))
    async with kandev.watching(session_id) as events:
        await turns_over(events)
    assert 1 <= len(await said(kandev, session_id, "system", "status")) <= 20


async def test_a_launch_that_fails_is_no_error_of_agentctl(kandev: Kandev) -> None:
    _, session_id = await kandev.session("say x", agent_profile_id=await hostile(kandev, "initialize"))
    async with kandev.watching(session_id) as events:
        await events.state("FAILED")
    lines = (kandev.home / "agentctl.log").read_text().splitlines()
    assert [line for line in lines if json.loads(line)["level"] == "error"] == []


class _Agent:
    """Ends its turn as soon as it is told of the first of its requests."""

    def __init__(self) -> None:
        self.permissions: Permissions | None = None

    async def answer_permission(self, request_id: str, **answer: Any) -> str:
        assert self.permissions is not None
        self.permissions.end_all(Identity(1))
        return "cancelled"


class _Record:
    async def write(self, *_: Any, **__: Any) -> None:
        return

    def put(self, *_: Any, **__: Any) -> None:
        return


async def test_a_turn_that_ends_while_its_permissions_are_cancelled_breaks_nothing() -> None:
    agent, tasks = _Agent(), Tasks()
    permissions = Permissions(_Record(), tasks, lambda: agent, auto_approve=False)  # type: ignore[arg-type, return-value]
    agent.permissions = permissions
    for name in ("a", "b", "c"):
        await permissions.ask(PermissionAsk(name, name, ()), Identity(1), lambda: None)
    await permissions.cancel_all(Identity(1), "cancel")
    await tasks.close()
    assert permissions.ids() == []


def _running(mark: str) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if words.endswith(f"\0import time; time.sleep(300)\0{mark}\0".encode()):
                found.append(int(entry.name))
    return found


@pytest.mark.skipif(own_group() is None, reason="this machine has no cgroup v2 that we may divide")
async def test_what_shed_every_mark_is_ended_by_the_agentctl_that_follows_a_killed_one(
    kandev: Kandev,
) -> None:
    agent, mark = await hostile(kandev), uuid.uuid4().hex
    _, session_id = await kandev.session(f"escape {mark}", agent_profile_id=agent)
    async with kandev.watching(session_id) as events:
        await agent_spoke(events)
    await until_true(lambda: _running(mark), "it escaped")
    try:
        os.kill(kandev.agentctl_pid(), signal.SIGKILL)
        _, other = await kandev.session("say hello", agent_profile_id=agent)
        async with kandev.watching(other) as events:
            await turns_over(events)
        await until_true(lambda: not _running(mark), "the escaped process is gone")
    finally:
        for pid in _running(mark):
            os.kill(pid, signal.SIGKILL)

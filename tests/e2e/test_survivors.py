"""Processes that cannot be ended: named on the execution, in the chat, in the logs, by `session.explain`."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.kandev import Events, Kandev
from tests.e2e.scenes import (
    add,
    agent_spoke,
    alive,
    command_of,
    get,
    marked,
    profile,
    said,
    turns_over,
    until_true,
)
from tests.e2e.tracing import kept_alive, with_sleeper

NAMED = "Processes that could not be ended: "


class Held:
    """A session whose agent has a child that nothing ends while the block lasts."""

    def __init__(self, kandev: Kandev, folder: Path) -> None:
        self.kandev, self.note = kandev, folder / "note"
        self.task_id, self.session_id, self.pid = "", "", 0

    async def begin(self, prompt: str) -> None:
        mock = (await self.kandev.call("agent.profile.list"))["profiles"][0]["command"]
        held = await profile(self.kandev, with_sleeper(str(self.note), mock))
        self.task_id, self.session_id = await self.kandev.session(prompt, agent_profile_id=held)
        await until_true(self.note.exists, "the child may be traced")
        (self.pid,) = [pid for pid in marked(self.session_id) if str(self.note) in command_of(pid)]

    @property
    def agent(self) -> int:
        """The agent's own process."""
        (pid,) = set(marked(self.session_id)) - {self.pid}
        return pid

    @contextmanager
    def kept(self, pid: int) -> Iterator[None]:
        with kept_alive(pid):
            yield

    async def named(self, events: Events, pid: int) -> None:
        """It is said, in all four places."""
        told = await events.until(
            "session.message.added", lambda p: p["message"]["content"].startswith(NAMED)
        )
        line = told["message"]
        survivor = f"{pid} {command_of(pid)[:200]}".strip()
        assert (line["type"], line["author_type"]) == ("error", "system")
        assert line["metadata"]["survivors"] == [survivor]
        explained = await self.kandev.call("session.explain", {"session_id": self.session_id})
        assert explained["survivors"] == [survivor]
        assert f"{NAMED}{survivor}." in explained["sentence"]
        assert survivors_stored(self.kandev, self.session_id) == [survivor]
        for log in ("backend.err", "agentctl.log"):
            lines = (self.kandev.home / log).read_text().splitlines()
            assert [one for one in lines if "could not be ended" in one and str(pid) in one], log


def survivors_stored(kandev: Kandev, session_id: str) -> list[str]:
    """What the rows of the session's executions hold."""
    with sqlite3.connect(f"file:{kandev.home}/kandev.db?mode=ro", uri=True) as database:
        found = database.execute("SELECT survivors FROM executions WHERE session_id = ?", (session_id,))
        rows = [json.loads(text) for (text,) in found]
    database.close()
    return [one for row in rows for one in row]


@pytest.fixture
def held(kandev: Kandev, tmp_path: Path) -> Held:
    return Held(kandev, tmp_path)


@pytest.mark.proves("STOP-hanging-teardown", "SURVIVE-survivors")
@pytest.mark.field("A01", "E07")
async def test_a_stop_names_the_process_that_could_not_be_ended(held: Held) -> None:
    await held.begin("say hello\nsleep 600")
    async with held.kandev.watching(held.session_id) as events:
        await agent_spoke(events)
        with held.kept(held.pid):
            await held.kandev.call("session.stop", {"session_id": held.session_id})
            assert (await get(held.kandev, held.session_id))["state"] == "CANCELLED"
            await held.named(events, held.pid)
            assert marked(held.session_id) == [held.pid], "everything else of it is gone"
    await until_true(lambda: not alive(held.pid), "it was sent SIGKILL, and ends as soon as it can")
    # An end and a start look after what is left, as it is done every few minutes.
    await held.kandev.stop()
    await held.kandev.start()
    explained = await held.kandev.call("session.explain", {"session_id": held.session_id})
    assert "survivors" not in explained and NAMED not in explained["sentence"]
    told = [line for line in await said(held.kandev, held.session_id, "system", "error") if NAMED in line]
    assert len(told) == 1, "the chat keeps what was true then"


@pytest.mark.proves("TURN-escalated-process-replaced", "SURVIVE-survivors")
async def test_a_replaced_agents_survivor_is_named_before_the_session_waits_again(held: Held) -> None:
    await held.begin("say hello\ndeaf 600")
    async with held.kandev.watching(held.session_id) as events:
        await agent_spoke(events)
        with held.kept(held.pid):
            answer = await held.kandev.call("agent.cancel", {"session_id": held.session_id})
            assert answer["error"] == "cancel timed out, still under way"
            session = await get(held.kandev, held.session_id)
            assert (session["state"], session["cancellation_pending"]) == ("RUNNING", True)
            await held.named(events, held.pid)
            await events.state("WAITING_FOR_INPUT")
            assert (await get(held.kandev, held.session_id))["cancellation_pending"] is False
            await add(held.kandev, held.task_id, held.session_id, "recall")
            await turns_over(events, 2)
    assert await said(held.kandev, held.session_id) == ["hello", "recall: say hello / deaf 600"]


@pytest.mark.proves("SURVIVE-survivors", "SURVIVE-agent-death")
async def test_an_agent_that_dies_and_leaves_a_survivor_says_both(held: Held) -> None:
    await held.begin("say hello\nask Go on\nexit 7")
    async with held.kandev.watching(held.session_id) as events:
        asked = await events.until("session.permission_requested")
        with held.kept(held.pid):
            answer = {"session_id": held.session_id, "request_id": asked["request_id"], "rejected": True}
            await held.kandev.call("permission.respond", answer)
            assert (await turns_over(events))["cause"] == "process"
            await held.named(events, held.pid)
    lines = await said(held.kandev, held.session_id, "system", "error")
    assert any("exit code 7" in line for line in lines)


@pytest.mark.proves("SURVIVE-survivors")
async def test_an_agent_that_cannot_be_ended_itself_is_named_and_nothing_waits_for_it(held: Held) -> None:
    await held.begin("say hello\nsleep 600")
    async with held.kandev.watching(held.session_id) as events:
        await agent_spoke(events)
        agent = held.agent
        with held.kept(agent):
            await held.kandev.call("session.stop", {"session_id": held.session_id})
            await held.named(events, agent)
            await held.kandev.call("session.recover", {"session_id": held.session_id})
            await add(held.kandev, held.task_id, held.session_id, "recall")
            await turns_over(events, 2)
    assert (await said(held.kandev, held.session_id))[-1] == "recall: say hello / sleep 600"

"""A disk that takes seconds for a commit: asks fail in time, and what was stored is found as it was."""

import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.kandev import CallFailed, Kandev
from tests.e2e.scenes import add, agent_spoke, get, nothing_left, said, turns_over, until_holds
from tests.host.conftest import on
from tests.host.disks import Image
from tests.host.test_full_disk import healthy, stream

pytestmark = pytest.mark.proves("SURVIVE-slow-disk")

COMMIT_S = 0.5
IN_TIME_S = 10
"""Generous: an idle session is loaded first, and then the machine may be busy."""


class Slow(Kandev):
    """A Kandev whose commits can be made to stand still."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "slow"
        slow = {"KANDEV_COMMIT_S": str(COMMIT_S), "SLOW_COMMITS": str(self._file)}
        super().__init__(folder / "home", slow, program=[str(Path(__file__).with_name("slow_commits.py"))])

    @contextmanager
    def standing_still(self, moment: str) -> Iterator[None]:
        """Commits wait, `before` or `after` they happen."""
        beside = self._file.with_name("slow.new")
        beside.write_text(moment)
        beside.replace(self._file)
        try:
            yield
        finally:
            self._file.unlink()

    async def fails(self, action: str, payload: dict[str, Any]) -> None:
        """It is answered in time, with a sentence about the disk."""
        begun = time.monotonic()
        with pytest.raises(CallFailed) as refused:
            await self.call(action, payload)
        assert time.monotonic() - begun < IN_TIME_S
        assert refused.value.code == "INTERNAL_ERROR"
        assert "slow" in refused.value.message and "may still happen" in refused.value.message


@pytest.fixture
async def slow(tmp_path: Path) -> AsyncIterator[Slow]:
    running = Slow(tmp_path)
    async with running:
        yield running


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_message_whose_commit_was_not_confirmed_is_one_message_and_is_delivered_once(
    slow: Slow, moment: str
) -> None:
    task_id, session_id = await slow.session("say one")
    async with slow.watching(session_id) as events:
        await turns_over(events)
        message = {"task_id": task_id, "session_id": session_id, "content": "say two", "idempotency_key": "k"}
        with slow.standing_still(moment):
            await slow.fails("message.add", message)
            health = await slow.get("/health")
            assert (health.status_code, health.json()["status"]) == (503, "hindered")
            explained = await slow.call("session.explain", {"session_id": session_id})
            assert "slow" in explained["trouble"]
        await turns_over(events, 2)
        again = await slow.call("message.add", message)
        status = await slow.call("message.status", {"entry_id": again["entry_id"]})
        assert status["state"] == "delivered"
        await slow.call("message.add", {**message, "content": "say three", "idempotency_key": "l"})
        await turns_over(events, 3)
    assert await said(slow, session_id) == ["one", "two", "three"]
    assert await said(slow, session_id, "user") == ["say one", "say two", "say three"]
    await until_holds(lambda: healthy(slow), "nothing is hindered any more")


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_stop_whose_commit_was_not_confirmed_happens_and_ends_the_process(
    slow: Slow, moment: str
) -> None:
    _, session_id = await slow.session("say one\nsleep 600")
    async with slow.watching(session_id) as events:
        await agent_spoke(events)
        with slow.standing_still(moment):
            await slow.fails("session.stop", {"session_id": session_id})
        await events.state("CANCELLED")
    await nothing_left(session_id)
    assert (await get(slow, session_id))["state"] == "CANCELLED"


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_output_that_came_meanwhile_is_whole_in_every_session(slow: Slow, moment: str) -> None:
    sessions = [(await slow.session(f"say s{n}\nstream 1500 1\nsay end"))[1] for n in range(3)]
    async with slow.watching(sessions[0]) as events:
        await agent_spoke(events)
        with slow.standing_still(moment):
            await slow.fails("session.rename", {"session_id": sessions[0], "name": "Slow"})
    for number, session_id in enumerate(sessions):
        async with slow.watching(session_id) as events:
            assert (await turns_over(events))["cause"] == "agent"
        assert "".join(await said(slow, session_id)) == f"s{number}{stream(1500)}end"


async def test_a_disk_that_stands_still_for_seconds_holds_all_up_and_loses_and_doubles_nothing(
    medium: Image, tmp_path: Path
) -> None:
    async with on(medium, tmp_path, {"KANDEV_COMMIT_S": str(COMMIT_S)}) as kandev:
        task_id, session_id = await kandev.session("say one\nstream 300 10\nsay end")
        async with kandev.watching(session_id) as events:
            await agent_spoke(events)
            with medium.frozen():
                for number in range(4):
                    with pytest.raises(CallFailed) as refused:
                        await add(kandev, task_id, session_id, f"say {number}")
                    assert refused.value.code == "INTERNAL_ERROR" and "slow" in refused.value.message
                assert (await kandev.get("/health")).json()["status"] == "hindered"
            await add(kandev, task_id, session_id, "say more")
            await turns_over(events)
            await until_holds(lambda: _said_last(kandev, session_id, "more"), "what came later is delivered")
            await until_holds(lambda: healthy(kandev), "nothing is hindered any more")
        agent, person = await said(kandev, session_id), await said(kandev, session_id, "user")
    assert "".join(agent).startswith(f"one{stream(300)}end")
    # What an ask that failed wanted may have been stored, and then it is there once.
    assert agent[-len(person) + 1 :] == [text.removeprefix("say ") for text in person[1:]]
    assert person[-1] == "say more" and len(person) == len(set(person))


async def _said_last(kandev: Kandev, session_id: str, text: str) -> bool:
    return (await said(kandev, session_id))[-1:] == [text]

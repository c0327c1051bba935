"""The time of day jumps by hours while programs run and between their starts."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.e2e.kandev import Kandev
from tests.e2e.scenes import add, agent_spoke, get, marked, said, turns_over

pytestmark = pytest.mark.proves("SURVIVE-clock")

HOURS = 6
JUMPS = [pytest.param(HOURS, id="forward"), pytest.param(-HOURS, id="back")]


class Jumping(Kandev):
    """All its programs but the agents have a time of day that jumps."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "jump"
        shifted = {"PYTHONPATH": str(Path(__file__).with_name("jumping")), "CLOCK_JUMP": str(self._file)}
        super().__init__(folder / "home", shifted)

    def jump(self, hours: int) -> None:
        """From now on it is so many hours later than it is."""
        beside = self._file.with_name("jump.new")
        beside.write_text(str(hours * 3600))
        beside.replace(self._file)

    async def hours_off(self) -> float:
        """What the backend's own stamps say, compared with our clock."""
        shown = (await self.task())["task"]["created_at"]
        return float((datetime.fromisoformat(shown) - datetime.now(UTC)) / timedelta(hours=1))


@pytest.fixture
async def jumping(tmp_path: Path) -> AsyncIterator[Jumping]:
    running = Jumping(tmp_path)
    async with running:
        yield running


@pytest.mark.parametrize("hours", JUMPS)
async def test_nothing_that_waits_is_ended_and_no_deadline_is_held_up(jumping: Jumping, hours: int) -> None:
    task_id, working = await jumping.session("say one\nsleep 600")
    _, asking = await jumping.session("say one\nask Remove it\nsay end")
    _, deaf = await jumping.session("say one\ndeaf 600")
    _, idle = await jumping.session("say one")
    async with jumping.watching(working) as works, jumping.watching(asking) as asks:
        await agent_spoke(works)
        asked = await asks.until("session.permission_requested")
        async with jumping.watching(idle) as rests:
            await turns_over(rests)
        before = {session: marked(session) for session in (working, asking, idle)}
        jumping.jump(hours)
        assert abs(await jumping.hours_off() - hours) < 1

        async with jumping.watching(deaf) as escalates:
            await agent_spoke(escalates)
            answer = await jumping.call("agent.cancel", {"session_id": deaf})
            assert not answer["success"] and "timed out" in answer["error"], "its deadline came"
            await turns_over(escalates)
        for session_id in (working, asking):
            assert (await get(jumping, session_id))["state"] == "RUNNING"
        explained = await jumping.call("session.explain", {"session_id": working})
        assert "silent" not in explained["sentence"]
        assert {session: marked(session) for session in before} == before, "nobody was ended or replaced"

        queued = await add(jumping, task_id, working, "say two")
        assert queued["status"] == "queued"
        await jumping.call(
            "permission.respond",
            {"session_id": asking, "request_id": asked["request_id"], "option_id": "allow_once"},
        )
        assert (await turns_over(asks))["cause"] == "agent"
        assert (await jumping.call("agent.cancel", {"session_id": working}))["success"]
        await add(jumping, task_id, working, "say three")
        await turns_over(works, 3)
    assert await said(jumping, working) == ["one", "three", "two"]
    seqs = [message["seq"] for message in await jumping.messages(working)]
    assert seqs == sorted(seqs)


@pytest.mark.parametrize("hours", JUMPS)
async def test_a_backend_that_starts_hours_off_takes_up_its_turns_and_keeps_the_order(
    jumping: Jumping, hours: int
) -> None:
    task_id, session_id = await jumping.session("say one\nsleep 3\nsay two")
    async with jumping.watching(session_id) as events:
        await agent_spoke(events)
        await add(jumping, task_id, session_id, "say three")
    (agent,) = marked(session_id)
    await jumping.kill()
    jumping.jump(hours)
    await jumping.start()
    await add(jumping, task_id, session_id, "say four")
    async with jumping.watching(session_id) as events:
        await turns_over(events, 3)
        seqs = [frame["payload"]["seq"] for frame in events.seen]
    assert seqs == sorted(set(seqs))
    assert marked(session_id) == [agent]
    assert await said(jumping, session_id) == ["one", "two", "three", "four"]
    asked = await said(jumping, session_id, "user")
    assert asked == ["say one\nsleep 3\nsay two", "say three", "say four"]

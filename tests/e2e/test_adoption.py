"""The next backend adopts every agent that goes on, and only its own; a second one touches nothing."""

import asyncio
import hashlib
import json
import shutil
from pathlib import Path

import httpx
import pytest

from tests.e2e.kandev import DEADLINE_S, Kandev
from tests.e2e.program import run
from tests.e2e.scenes import (
    add,
    agent_spoke,
    alive,
    marked,
    profile,
    said,
    turns_over,
    until_holds,
    until_true,
)

SESSIONS = 50
TINY = Path(__file__).resolve().parents[1] / "fakes" / "tiny_agent.sh"


async def instances(kandev: Kandev) -> dict[str, dict[str, int]]:
    """What agentctl says of every execution that it has, by id."""
    known = json.loads((kandev.home / "agentctl.json").read_text())
    async with httpx.AsyncClient(trust_env=False, timeout=DEADLINE_S) as http:
        headers = {"Authorization": f"Bearer {known['token']}"}
        answer = await http.get(known["url"] + "/api/v1/instances", headers=headers)
    return {one["instance_id"]: one for one in answer.json()["instances"]}


@pytest.mark.proves("SURVIVE-backend-kill", "SURVIVE-identity", "INV-1", "INV-2")
async def test_fifty_working_sessions_are_adopted_with_the_same_processes_and_nothing_lost_or_doubled(
    kandev: Kandev, tmp_path: Path
) -> None:
    enough = tmp_path / "enough"
    counting = await profile(kandev, [str(TINY), "counts", str(enough)])
    made = await asyncio.gather(*(kandev.session("go", agent_profile_id=counting) for _ in range(SESSIONS)))
    for _, session_id in made:
        async with kandev.watching(session_id) as events:
            await agent_spoke(events)
    before = await instances(kandev)
    processes = {session_id: marked(session_id)[:1] for _, session_id in made}
    await kandev.kill()
    await kandev.start()

    async def adopted() -> bool:
        """Each one's output since the kill is taken."""
        now = await instances(kandev)
        return now.keys() == before.keys() and all(
            one.get("acknowledged_seq", 0) > before[id].get("acknowledged_seq", 0) for id, one in now.items()
        )

    await until_holds(adopted, "all are adopted")
    assert {id: one["pid"] for id, one in (await instances(kandev)).items()} == {
        id: one["pid"] for id, one in before.items()
    }
    enough.touch()
    for _, session_id in made:
        async with kandev.watching(session_id) as events:
            assert (await turns_over(events))["cause"] == "agent"
        assert marked(session_id)[:1] == processes[session_id]
        (counted,) = await said(kandev, session_id)
        *numbers, last = counted.split()
        assert (numbers, last) == ([str(n) for n in range(1, len(numbers) + 1)], "end")
        assert await said(kandev, session_id, "user") == ["go"]


def contents(home: Path) -> dict[str, str]:
    """Every file of a home by what it holds, but logs and SQLite's memory, in which the first backend marks
    what it reads."""
    passing = (".err", ".log", ".db-shm")
    files = (path for path in home.rglob("*") if path.is_file() and path.suffix not in passing)
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.mark.proves("CLI-one-backend", "SURVIVE-identity")
@pytest.mark.parametrize("spelled", ["home", "link"])
async def test_a_second_backend_says_one_sentence_and_touches_nothing(
    kandev: Kandev, tmp_path: Path, spelled: str
) -> None:
    (tmp_path / "link").symlink_to(kandev.home, target_is_directory=True)
    task_id, session_id = await kandev.session("say hello\nlate 600")
    async with kandev.watching(session_id) as events:
        await agent_spoke(events)
        await add(kandev, task_id, session_id, "say queued")
    agents, agentctl = marked(session_id), kandev.agentctl_pid()
    await until_holds(lambda: _settled(kandev), "everything that was said is acknowledged")
    before, held = contents(kandev.home), await instances(kandev)
    second = await run(Kandev(tmp_path / spelled), "serve", "--port", "0", "--no-browser")
    assert second.code == 1 and second.out == ""
    assert len(second.err.strip().splitlines()) == 1
    assert "another backend uses the home" in second.err and "--home" in second.err
    assert contents(kandev.home) == before
    assert await instances(kandev) == held
    assert (marked(session_id), kandev.agentctl_pid()) == (agents, agentctl)
    assert (await kandev.call("agent.cancel", {"session_id": session_id}))["success"] is False, (
        "the first one still owns agentctl: its cancel was not refused for an old epoch, but unheard"
    )


async def _settled(kandev: Kandev) -> bool:
    known = (await instances(kandev)).values()
    return all(one.get("acknowledged_seq", 0) == one.get("last_seq", 0) > 0 for one in known)


@pytest.mark.proves("SURVIVE-identity")
async def test_a_backend_on_a_copy_of_a_home_leaves_the_agents_of_the_original_alone(
    kandev: Kandev, tmp_path: Path
) -> None:
    _, session_id = await kandev.session("say hello\nask Go on\nsay done")
    async with kandev.watching(session_id) as events:
        asked = await events.until("session.permission_requested")
    (agent,) = marked(session_id)
    agentctl = kandev.agentctl_pid()
    await kandev.kill()
    copy = tmp_path / "copy"
    shutil.copytree(kandev.home, copy)
    async with Kandev(copy) as other:
        async with other.watching(session_id) as events:
            assert (await turns_over(events))["cause"] == "lost"
            await events.state("WAITING_FOR_INPUT")
        assert other.agentctl_pid() != agentctl
        assert alive(agent) and alive(agentctl)
    assert alive(agent) and alive(agentctl), "neither its start nor its end reached them"
    await kandev.start()
    answer = {"session_id": session_id, "request_id": asked["request_id"], "option_id": "allow_once"}
    await kandev.call("permission.respond", answer)
    async with kandev.watching(session_id) as events:
        assert (await turns_over(events))["cause"] == "agent"
    assert (await said(kandev, session_id))[-1] == "done"
    assert marked(session_id) == [agent]


@pytest.mark.proves("SURVIVE-identity", "SURVIVE-backend-kill")
async def test_a_file_of_agentctl_that_was_lost_with_the_backend_comes_back_and_so_do_its_agents(
    kandev: Kandev,
) -> None:
    _, session_id = await kandev.session("say hello\nask Go on\nsay done")
    async with kandev.watching(session_id) as events:
        asked = await events.until("session.permission_requested")
    (agent,) = marked(session_id)
    agentctl = kandev.agentctl_pid()
    await kandev.kill()
    (kandev.home / "agentctl.json").unlink()
    await kandev.start()
    await until_true((kandev.home / "agentctl.json").exists, "it is written anew")
    assert kandev.agentctl_pid() == agentctl
    answer = {"session_id": session_id, "request_id": asked["request_id"], "option_id": "allow_once"}
    await kandev.call("permission.respond", answer)
    async with kandev.watching(session_id) as events:
        assert (await turns_over(events))["cause"] == "agent"
    assert marked(session_id) == [agent]

"""People arrange a queue on the command line, with a real agent that works meanwhile."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.e2e.kandev import Kandev
from tests.e2e.program import run
from tests.e2e.scenes import agent_spoke, turns_over


async def told(house: Kandev, *words: str) -> Any:
    """The answer of a command that must succeed."""
    done = await run(house, *words, "--json")
    assert done.code == 0, done
    return json.loads(done.out)


async def heard(house: Kandev, session_id: str) -> list[str]:
    """What was said to the agent, in order."""
    messages = (await told(house, "message", "list", session_id))["messages"]
    return [m["content"] for m in messages if m["author_type"] == "user"]


@pytest.mark.proves(
    "ACT-message.queue.add",
    "ACT-message.queue.update",
    "ACT-message.queue.reorder",
    "ACT-message.queue.send_now",
    "ACT-message.queue.auto_run.set",
)
async def test_a_queue_is_arranged_paused_over_a_crash_and_let_go(kandev: Kandev) -> None:
    task_id, session_id = await kandev.session("say begin\nsleep 600")
    async with kandev.watching(session_id) as events:
        await agent_spoke(events)
    first, second, third = [
        (await told(kandev, "queue", "add", task_id, f"say {number}"))["entry_id"] for number in range(3)
    ]
    await told(kandev, "queue", "edit", task_id, second, "say other words")
    await told(kandev, "queue", "move", task_id, third, "0")
    await told(kandev, "queue", "remove", task_id, first[-12:])
    await told(kandev, "queue", "pause", task_id)
    listed = await run(kandev, "queue", "list", task_id)
    assert [line.split()[1] for line in listed.out.splitlines()[1:3]] == [third, second]
    assert "The queue is paused." in listed.out

    await kandev.kill()
    await kandev.start()
    async with kandev.watching(session_id) as events:
        await kandev.call("agent.cancel", {"session_id": session_id})
        await turns_over(events)
    queue = await told(kandev, "queue", "list", task_id)
    assert [entry["content"] for entry in queue["entries"]] == ["say 2", "say other words"]
    assert await heard(kandev, session_id) == ["say begin\nsleep 600"]

    async with kandev.watching(session_id) as events:
        sent = await run(kandev, "queue", "send-now", task_id, second)
        assert sent.out == f"Entry {second} is sent: the agent has it.\n"
        await turns_over(events, 2)
    assert (await heard(kandev, session_id))[1:] == ["say other words", "say 2"]
    status = await run(kandev, "message", "status", third)
    assert status.out.startswith("The agent has it.")
    again = await run(kandev, "queue", "remove", task_id, second)
    assert (again.code, again.err) == (
        1,
        f"kandev: The entry {second} does not wait in the queue of {session_id}. The agent has it.\n",
    )

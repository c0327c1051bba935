"""A parent's agent that uses its tools when it is told to, and its child. Not here: what tests find out."""

from __future__ import annotations

import json
from typing import Any

from tests.e2e.kandev import Kandev
from tests.e2e.scenes import add, said, turns_over


class Parent:
    """A session whose agent has ended its first turn, and calls tools when it is told to."""

    def __init__(self, house: Kandev, task_id: str, session_id: str) -> None:
        self.house, self.task_id, self.session_id = house, task_id, session_id
        self.turns = 1

    async def results(self) -> list[dict[str, Any]]:
        lines = await said(self.house, self.session_id)
        return [json.loads(x.removeprefix("mcp-result ")) for x in lines if x.startswith("mcp-result")]

    async def begins(self, tool: str, **arguments: Any) -> None:
        """A call in a turn of its own, whose result is not waited for."""
        self.turns += 1
        await add(self.house, self.task_id, self.session_id, f"mcp {tool} {json.dumps(arguments)}")

    async def result(self) -> dict[str, Any]:
        """The whole result of the call that was begun last."""
        async with self.house.watching(self.session_id) as events:
            await turns_over(events, self.turns)
        return (await self.results())[-1]

    async def uses(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The whole result of one call."""
        await self.begins(tool, **arguments)
        return await self.result()

    async def gets(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """What a call that must succeed answers."""
        return succeeded(await self.uses(tool, **arguments))


def succeeded(result: dict[str, Any]) -> dict[str, Any]:
    """What the call answers, which is no error."""
    assert not result.get("isError"), result
    found: dict[str, Any] = result["structuredContent"]
    return found


async def parent_of(house: Kandev) -> Parent:
    """A parent whose agent waits."""
    task_id, session_id = await house.session("say ready")
    async with house.watching(session_id) as events:
        await turns_over(events)
    return Parent(house, task_id, session_id)


async def family(house: Kandev, prompt: str, **more: Any) -> tuple[Parent, str, str]:
    """A parent, its child's task and session; the child's agent is at work."""
    parent = await parent_of(house)
    made = await parent.gets("create_task", title="Child", prompt=prompt, parent_id="self", **more)
    return parent, made["task_id"], made["session_id"]

"""A task on a board of its own, and what tests of steps ask of it. Not here: the tests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kandev.core.board import OwedEnter, Task
from tests.gateway.house import MOCK, WAIT_S, House

NEXT: Mapping[str, Any] = {"type": "move_to_next"}
PLAN_AND_BUILD: tuple[dict[str, Any], ...] = (
    {"name": "Plan", "events": {"on_turn_complete": [NEXT]}},
    {"name": "Build", "events": {"on_enter": [{"type": "auto_start_agent", "prompt": "sleep 0.2"}]}},
)


def start(prompt: str) -> dict[str, Any]:
    return {"on_enter": [{"type": "auto_start_agent", "prompt": prompt}]}


@dataclass
class Card:
    """A task on a board of its own."""

    house: House
    id: str
    steps: dict[str, str]
    session: str = ""

    async def row(self) -> Task:
        found = await self.house.ctx.store.read(lambda tx: tx.tasks.get(self.id))
        assert found is not None
        return found

    async def where(self) -> tuple[str, str]:
        row = await self.row()
        return next(name for name, id in self.steps.items() if id == row.workflow_step_id), row.state

    async def until(self, step: str, state: str) -> None:
        await self.wait(self.where, (step, state))

    async def wait(self, look: Callable[[], Any], wanted: Any) -> None:
        """Until it says this."""
        found = None
        try:
            async with asyncio.timeout(WAIT_S):
                while (found := await look()) != wanted:
                    await asyncio.sleep(0.01)
        except TimeoutError:
            raise AssertionError(f"{found} instead of {wanted}") from None

    async def launch(self, prompt: str) -> str:
        launched = await self.house.ok("session.launch", task_id=self.id, prompt=prompt)
        self.session = launched["session_id"]
        return self.session

    async def say(self, content: str) -> dict[str, Any]:
        return await self.house.ok("message.add", task_id=self.id, session_id=self.session, content=content)

    async def move(self, step: str) -> dict[str, Any]:
        return await self.house.ok("task.move", id=self.id, workflow_step_id=self.steps[step])

    async def sent(self, session_id: str = "") -> list[str]:
        """What the agent was told, in order."""
        answer = await self.house.ok("message.list", session_id=session_id or self.session)
        return [m["content"] for m in answer["messages"] if m["author_type"] == "user"]

    async def told(self, *prompts: str) -> None:
        """Until the agent has been told exactly these."""
        await self.wait(self.sent, list(prompts))

    def changes(self) -> list[tuple[str, str]]:
        told = [n.payload for n in self.house.heard.all if n.action == "task.state_changed"]
        return [(p["old_state"], p["new_state"]) for p in told if p["task_id"] == self.id]


async def card(house: House, *steps: dict[str, Any], **more: Any) -> Card:
    """Its board has these steps, or the template's."""
    workspace = await house.ok("workspace.create", name="Shop")
    given = {"steps": list(steps)} if steps else {}
    flow = await house.ok("workflow.create", workspace_id=workspace["id"], name="Flow", **given)
    await house.ok("agent.profile.create", name="Mock", command=list(MOCK))
    names = {step["name"]: step["id"] for step in flow["steps"]}
    more = {"title": "Fix it", "description": "say fixed", **more}
    task = await house.ok("task.create", workspace_id=workspace["id"], workflow_id=flow["id"], **more)
    return Card(house, task["task"]["id"], names, task.get("session_id", ""))


async def allow(house: House, session_id: str) -> None:
    """Answer the agent's permission request as soon as it is there."""
    async with asyncio.timeout(WAIT_S):
        while True:
            answer = await house.ok("message.list", session_id=session_id)
            asked = [m for m in answer["messages"] if m["type"] == "permission_request"]
            if asked:
                break
            await asyncio.sleep(0.01)
    request = asked[-1]["metadata"]
    option = request["options"][0]
    await house.ok(
        "permission.respond",
        session_id=session_id,
        request_id=request["request_id"],
        option_id=option.get("option_id") or option.get("id"),
    )


async def settled(it: Card) -> None:
    """Until its step owes nothing."""

    async def owed() -> OwedEnter | None:
        return (await it.row()).owed_enter

    await it.wait(owed, None)

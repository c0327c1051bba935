"""A session of a real agent under Kandev, as tests talk to it. Not for agents without Kandev (`driver`)."""

import json
from typing import Any

from tests.e2e.kandev import Events, Kandev

from . import processes
from .bed import Bed, BedAgent, profile_for
from .model import ScriptedModel

TURN_S = 60.0
GONE_S = 5.0
HONEST = {"KANDEV_CANCEL_ACKNOWLEDGE_S": "5", "KANDEV_LAUNCH_S": "60", "KANDEV_MESSAGE_ANSWER_S": "20"}
"""The deadlines that real agents need."""


class Work:
    """A session of a real agent on a task in a real repository."""

    def __init__(self, kandev: Kandev, task_id: str, session_id: str) -> None:
        self.kandev, self.task_id, self.session_id = kandev, task_id, session_id

    async def say(self, content: str) -> dict[str, Any]:
        message = {"task_id": self.task_id, "session_id": self.session_id, "content": content}
        return await self.kandev.call("message.add", message)

    async def cancel(self) -> dict[str, Any]:
        return await self.kandev.call("agent.cancel", {"session_id": self.session_id})

    async def agent_text(self) -> str:
        messages = await self.kandev.messages(self.session_id)
        return "".join(
            m["content"] for m in messages if (m["author_type"], m["type"]) == ("agent", "message")
        )

    async def turn_over(self, events: Events, generation: int) -> dict[str, Any]:
        return await events.until("session.turn.completed", lambda p: p["prompt_generation"] == generation)


async def begin(kandev: Kandev, bed: Bed, agent: BedAgent, prompt: str, *, auto_approve: bool = True) -> Work:
    wanted = {**profile_for(bed, agent), "auto_approve": auto_approve}
    profile = await kandev.call("agent.profile.create", wanted)
    repository = {"workspace_id": await kandev.workspace(), "local_path": str(agent.workspace)}
    repository_id = (await kandev.call("repository.create", repository))["id"]
    task_id, session_id = await kandev.session(
        prompt, agent_profile_id=profile["id"], repositories=[{"repository_id": repository_id}]
    )
    return Work(kandev, task_id, session_id)


async def command_ended(work: Work, agent: BedAgent, command: str) -> None:
    """The cancel of its turn ended the command; or the agent is one that leaves it, and a stop ends what was
    named."""

    def running() -> bool:
        return any(process.command == command for process in processes.marked(agent.mark))

    try:
        await processes.wait_until(lambda: not running(), f"the end of {command}", GONE_S)
    except TimeoutError:
        if not agent.may_leave_commands:
            raise
        lines = [m["content"] for m in await work.kandev.messages(work.session_id)]
        assert [
            line for line in lines if line.startswith("Still running after the turn: ") and command in line
        ]
        await work.kandev.call("session.stop", {"session_id": work.session_id})
        await processes.wait_until(lambda: not running(), f"the end of {command}", GONE_S)
        await work.kandev.call("session.recover", {"session_id": work.session_id})


async def remembers(work: Work, events: Events, model: ScriptedModel, generation: int, word: str) -> None:
    """The next prompt, of this generation, reaches the model with the conversation."""
    await work.say("which word was it")
    assert (await work.turn_over(events, generation))["cause"] == "agent"
    asked = await model.log.asked("which word was it")
    assert word in json.dumps(model.log.bodies[asked["n"]]), "the agent has the conversation"

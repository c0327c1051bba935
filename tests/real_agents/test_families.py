"""A real agent coordinates another one by its own MCP client, and one asks a person by it."""

from __future__ import annotations

import json
import re
import secrets
from typing import Any

import pytest

from tests.e2e.kandev import Kandev
from tests.e2e.scenes import until_holds

from . import processes
from .bed import Bed, BedAgent, NotInstalledError, profile_for
from .model import ScriptedModel
from .working import GONE_S, TURN_S, Work, begin

STATUS = re.compile(r'\\*"status\\*":\s*\\*"(\w+)')
IMPATIENT_MS = 2_000
"""Less than the time between two signs of life of a call that waits for a person."""


def ready(bed: Bed, name: str) -> BedAgent:
    """The agent, or the test is skipped."""
    try:
        return bed.agent(name)
    except NotInstalledError as missing:
        pytest.skip(str(missing))


def call_of(tool: str, **arguments: Any) -> str:
    """What makes the scripted model call a tool."""
    return f"[mcp {tool}_kandev {json.dumps(arguments)}]"


class Family:
    """A parent that has created a child by its own tool."""

    def __init__(self, parent: Work) -> None:
        self.parent = parent
        self.turns = 0

    async def uses(self, tool: str, **arguments: Any) -> str:
        """What the parent's agent says of a call in a turn of its own."""
        work = self.parent
        before = len(await work.agent_text())
        async with work.kandev.watching(work.session_id) as events:
            await work.say(call_of(tool, **arguments))
            self.turns += 1
            assert (await work.turn_over(events, self.turns))["cause"] == "agent"
        return (await work.agent_text())[before:]

    async def child(self, **arguments: Any) -> Work:
        """Made, and its agent begun."""
        said = await self.uses("create_task", title="Child", parent_id="self", **arguments)
        kandev = self.parent.kandev
        tasks = (await kandev.call("task.list"))["tasks"]
        found = [task["id"] for task in tasks if task.get("parent_id") == self.parent.task_id]
        assert len(found) == 1, said
        (session,) = (await kandev.call("task.session.list", {"task_id": found[0]}))["sessions"]
        return Work(kandev, found[0], session["id"])

    async def status(self, child: Work, prompt: str, **more: Any) -> str:
        """What a message to the child was answered."""
        said = await self.uses("message_task", task_id=child.task_id, prompt=prompt, **more)
        found = STATUS.search(said)
        assert found is not None, said
        return found[1]


@pytest.mark.proves("MCP-message-task", "MCP-task-mode")
@pytest.mark.parametrize(("above", "below"), [("gemini", "opencode"), ("opencode", "gemini")])
async def test_a_real_agent_queues_for_and_then_interrupts_its_real_child_in_mid_command(
    kandev: Kandev, bed: Bed, model: ScriptedModel, above: str, below: str
) -> None:
    parent_agent, child_agent = ready(bed, above), ready(bed, below)
    command = f"sleep 63.{secrets.randbelow(9000) + 1000}"

    def running() -> bool:
        return any(process.command == command for process in processes.marked(child_agent.mark))

    wanted = {**profile_for(bed, child_agent), "auto_approve": True}
    profile = await kandev.call("agent.profile.create", wanted)
    family = Family(await begin(kandev, bed, parent_agent, "hello parent"))
    family.turns = 1
    async with kandev.watching(family.parent.session_id) as events:
        await family.parent.turn_over(events, 1)
    child = await family.child(prompt=f"[shell {command}]", agent_profile_id=profile["id"])
    await processes.wait_until(running, command, TURN_S)
    async with kandev.watching(child.session_id) as events:
        assert await family.status(child, "it can wait") == "queued"
        assert await family.status(child, "do this at once", delivery_mode="interrupt") == "sent"
        assert (await child.turn_over(events, 1))["cause"] == "interrupted"
        await processes.wait_until(lambda: not running(), f"the end of {command}", GONE_S)
        assert (await child.turn_over(events, 2))["cause"] == "agent"
        assert (await child.turn_over(events, 3))["cause"] == "agent"
    await in_order(child, family.parent, f"[shell {command}]")
    at_once, waited = await told(model, "do this at once"), await told(model, "it can wait")
    assert at_once["n"] < waited["n"]
    heard = json.dumps(model.log.bodies[at_once["n"]])
    assert f"The agent of task {family.parent.task_id} " in heard, "it is told whose message it is"
    await ended(family.parent, child, agents=(parent_agent, child_agent))


async def told(model: ScriptedModel, text: str) -> dict[str, Any]:
    """What the child's agent asked its model when it had got this message."""
    return await model.log.seen(lambda asked: asked.get("user", "").strip() == text)


async def in_order(child: Work, parent: Work, first: str) -> None:
    """The child's transcript names the sender, and holds each message once."""
    messages = await child.kandev.messages(child.session_id)
    told = [message for message in messages if message["author_type"] == "user"]
    assert [message["content"] for message in told] == [first, "do this at once", "it can wait"]
    for message in told[1:]:
        assert message["metadata"]["sender_task_id"] == parent.task_id
        assert message["metadata"]["sender_session_id"] == parent.session_id
    lines = [message["content"] for message in messages if message["author_type"] == "system"]
    assert not [line for line in lines if "cancelled by" in line], lines
    tools = [message for message in messages if message["type"] == "tool_call"]
    assert all(message["metadata"]["status"] not in ("pending", "in_progress") for message in tools)


async def ended(*sessions: Work, agents: tuple[BedAgent, ...]) -> None:
    """Nothing waits, and a stop leaves nothing."""
    for work in sessions:
        session = await work.kandev.call("session.get", {"session_id": work.session_id})
        assert session["queue"]["count"] == 0
        await work.kandev.call("session.stop", {"session_id": work.session_id})

    def left() -> bool:
        return any(processes.marked(agent.mark) for agent in agents)

    await processes.wait_until(lambda: not left(), "nothing left", GONE_S)


async def question(work: Work) -> str:
    """Until the agent's question is open; its name."""
    found: list[str] = []

    async def asked() -> bool:
        session = await work.kandev.call("session.get", {"session_id": work.session_id})
        found[:] = [one["pending_id"] for one in session.get("questions", [])]
        return bool(found)

    await until_holds(asked, "the agent asks")
    return found[0]


async def answer(work: Work, pending: str, text: str) -> dict[str, Any]:
    """A person's."""
    given = {"pending_id": pending, "answers": [{"question_id": "q1", "custom_text": text}]}
    return await work.kandev.call("clarification.respond", given)


ASKS = call_of("ask_user_question", questions=[{"prompt": "Which colour?"}])


@pytest.mark.parametrize("name", ["gemini", "opencode"])
async def test_a_real_agent_asks_a_person_and_has_the_answer_in_its_call(
    kandev: Kandev, bed: Bed, name: str
) -> None:
    work = await begin(kandev, bed, ready(bed, name), ASKS)
    async with kandev.watching(work.session_id) as events:
        told = await answer(work, await question(work), "mauve")
        assert told["status"] == "sent"
        assert (await work.turn_over(events, 1))["cause"] == "agent"
    text = await work.agent_text()
    assert "done:" in text and "mauve" in text, text
    assert len([m for m in await kandev.messages(work.session_id) if m["author_type"] == "user"]) <= 2


async def test_what_a_person_answers_when_a_real_agents_client_has_given_up_is_its_next_prompt(
    kandev: Kandev, bed: Bed, model: ScriptedModel
) -> None:
    agent = ready(bed, "opencode")
    file = agent.home / ".config/opencode/opencode.json"
    settings = json.loads(file.read_text())
    file.write_text(json.dumps({**settings, "experimental": {"mcp_timeout": IMPATIENT_MS}}))
    work = await begin(kandev, bed, agent, ASKS)
    async with kandev.watching(work.session_id) as events:
        pending = await question(work)
        assert (await work.turn_over(events, 1))["cause"] == "agent", "its client has given up"
        assert "mauve" not in await work.agent_text()
        assert (await answer(work, pending, "mauve"))["status"] == "sent"
        assert (await work.turn_over(events, 2))["cause"] == "agent"
    assert "mauve" in (await model.log.asked("mauve"))["user"]

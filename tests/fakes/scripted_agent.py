"""A simulated agent: plays the mock agent's scripts on the event loop alone, without process, pipe or
disk.

It knows the lines that turn control needs; an unknown one is echoed. Not here: attribution, fences and
journal, which are the simulated agentctl's (`agentctl`).
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Protocol

from kandev.agentctl.mock_agent.script import Command, parse, prompt_text
from kandev.core import transcript

OPTIONS = (
    {"option_id": "allow_always", "name": "Always allow", "kind": "allow_always"},
    {"option_id": "allow_once", "name": "Allow once", "kind": "allow_once"},
    {"option_id": "reject_once", "name": "Reject", "kind": "reject_once"},
)
ASK_AFTER_CANCEL_S = 2.0


class Ears(Protocol):
    """What the agent is heard by."""

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]: ...

    async def said(self, content: transcript.Content) -> None: ...

    async def asked(self, ask: transcript.PermissionAsk) -> asyncio.Future[str]: ...

    async def call_tool(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]: ...

    async def prompt_over(self, stop_reason: str, error: str | None) -> None: ...

    async def exited(self, code: int) -> None: ...


class Play:
    """One prompt under way."""

    def __init__(self) -> None:
        self.cancelled = asyncio.Event()
        self.deaf = False
        self.over = False


class ScriptedAgent:
    """One agent process. `name` is in the ids of its permission requests, which no other process has."""

    def __init__(self, ears: Ears, name: str) -> None:
        self.cancels = 0
        self.beside = 0
        """Commands of a turn that may outlive it, and run."""
        self.told: list[str] = []
        """Its prompts, whole."""
        self._ears, self._name = ears, name
        self._play: Play | None = None
        self._lose = 0
        self._echo_after = 0
        self._messages = 0

    def prompt(self, content: str) -> None:
        self._play = Play()
        self.told.append(content)
        script = prompt_text([{"type": "text", "text": content}])
        self._ears.start(self._perform(self._play, parse(script)))

    def cancel(self) -> None:
        """One cancel of the protocol; it names no turn, so it hits whatever runs."""
        self.cancels += 1
        play = self._play
        if self._lose > 0:
            self._lose -= 1
        elif play is not None and not play.deaf and not play.over:
            play.cancelled.set()

    async def _perform(self, play: Play, commands: list[Command]) -> None:
        stop_reason, error = "end_turn", None
        for command in commands:
            if command.name == "silent":
                return
            if command.name == "fail":
                stop_reason, error = "error", command.arguments[1]
                break
            await LINES.get(command.name, _echo)(self, play, *command.arguments)
            if play.over:
                return
            if play.cancelled.is_set():
                stop_reason = "end_turn" if command.name == "lie" else "cancelled"
                break
        play.over = True
        await self._ears.prompt_over(stop_reason, error)
        for number in range(self._echo_after):
            await self.say(f"after {number + 1}")
        self._echo_after = 0

    async def say(self, text: str, message_id: str | None = None) -> None:
        await self._ears.said(transcript.Text("message", text, message_id or self.new_id("msg")))

    def new_id(self, noun: str) -> str:
        self._messages += 1
        return f"{noun}-{self._messages}"

    # -- the lines ------------------------------------------------------------------------------

    async def line_think(self, play: Play, text: str) -> None:
        await self._ears.said(transcript.Text("thought", text, self.new_id("thought")))

    async def line_stream(self, play: Play, count: str, delay_ms: str) -> None:
        message_id = self.new_id("msg")
        for number in range(1, int(count) + 1):
            if number > 1 and await _cancelled_within(play, float(delay_ms) / 1000):
                return
            await self.say(f"chunk {number} ", message_id)

    async def line_deaf(self, play: Play, seconds: str) -> None:
        play.deaf = True
        await asyncio.sleep(float(seconds))
        play.deaf = False

    async def line_late(self, play: Play, seconds: str) -> None:
        await play.cancelled.wait()
        await asyncio.sleep(float(seconds))

    async def line_tool(self, play: Play, title: str, seconds: str) -> None:
        call = self.new_id("call")
        await self._ears.said(transcript.ToolCall(call, title, "execute", "in_progress"))
        failed = await _cancelled_within(play, float(seconds))
        await self._ears.said(transcript.ToolChange(call, status="failed" if failed else "completed"))

    async def line_ask(self, play: Play, title: str) -> None:
        ask = transcript.PermissionAsk(
            self.new_id(f"permission-{self._name}"),
            title,
            OPTIONS,
            tool_call_id=self.new_id("call"),
            kind="execute",
        )
        answer = await self._ears.asked(ask)
        cancel = asyncio.ensure_future(play.cancelled.wait())
        first: set[asyncio.Future[Any]] = {answer, cancel}
        try:
            await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
            if not answer.done():
                await asyncio.wait({answer}, timeout=ASK_AFTER_CANCEL_S)
        finally:
            cancel.cancel()
        await self.say(f"outcome: {answer.result() if answer.done() else 'none'}")

    async def line_mcp(self, play: Play, tool: str, arguments: str) -> None:
        call = asyncio.ensure_future(self._ears.call_tool(tool, json.loads(arguments or "{}")))
        cancel = asyncio.ensure_future(play.cancelled.wait())
        first: set[asyncio.Future[Any]] = {call, cancel}
        try:
            await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
        finally:
            answered = call.done()
            call.cancel()
            cancel.cancel()
            await asyncio.wait(first)
        if answered:
            await self.say(f"mcp-result {json.dumps(call.result())}")

    async def line_lose(self, play: Play, count: str) -> None:
        self._lose = int(count)

    async def line_echo_after(self, play: Play, count: str) -> None:
        self._echo_after = int(count)

    async def line_wake(self, play: Play, seconds: str, text: str) -> None:
        async def later() -> None:
            await asyncio.sleep(float(seconds))
            await self.say(text)

        self._ears.start(later())

    async def line_spawn(self, play: Play, seconds: str) -> None:
        async def run() -> None:
            await asyncio.sleep(float(seconds))
            self.beside -= 1

        self.beside += 1
        self._ears.start(run())
        await self.say("pid 1")

    async def line_exit(self, play: Play, code: str) -> None:
        play.over = True
        await self._ears.exited(int(code))

    async def line_crash(self, play: Play) -> None:
        play.over = True
        await self._ears.exited(-9)


async def _cancelled_within(play: Play, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            return await play.cancelled.wait()
    except TimeoutError:
        return False


async def _echo(agent: ScriptedAgent, play: Play, *words: str) -> None:
    await agent.say(" ".join(words))


async def _wait(agent: ScriptedAgent, play: Play, seconds: str) -> None:
    await _cancelled_within(play, float(seconds))


LINES: dict[str, Callable[..., Awaitable[None]]] = {
    "say": _echo,
    "sleep": _wait,
    "lie": _wait,
    "think": ScriptedAgent.line_think,
    "stream": ScriptedAgent.line_stream,
    "deaf": ScriptedAgent.line_deaf,
    "late": ScriptedAgent.line_late,
    "tool": ScriptedAgent.line_tool,
    "ask": ScriptedAgent.line_ask,
    "mcp": ScriptedAgent.line_mcp,
    "lose": ScriptedAgent.line_lose,
    "echo-after": ScriptedAgent.line_echo_after,
    "wake": ScriptedAgent.line_wake,
    "spawn": ScriptedAgent.line_spawn,
    "exit": ScriptedAgent.line_exit,
    "crash": ScriptedAgent.line_crash,
}

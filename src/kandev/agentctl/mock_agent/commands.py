"""What each line of a script does. How lines are told apart is in `script`; what ends a process is in `app`.

A handler takes the stage and the line's arguments. It may wait only through its turn, so that a cancel ends
the wait, except where being hard of hearing is the line's purpose.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from kandev.agentctl.mock_agent.mcp_client import McpFailure
from kandev.agentctl.mock_agent.memory import Entry
from kandev.agentctl.mock_agent.rpc import Connection, Json, RpcError
from kandev.agentctl.mock_agent.script import Command
from kandev.agentctl.mock_agent.session import Session, Turn, new_id

LATE_WAITS_S = 600.0
ASK_AFTER_CANCEL_S = 2.0
_GARBAGE = (b"this is not JSON", b'{"jsonrpc":"2.0","method":', b"\xff\xfe\x00 not UTF-8", b"[1, 2,")
_OPTIONS = [
    {"optionId": "allow_always", "name": "Always allow", "kind": "allow_always"},
    {"optionId": "allow_once", "name": "Allow once", "kind": "allow_once"},
    {"optionId": "reject_once", "name": "Reject", "kind": "reject_once"},
]


@dataclass
class Switches:
    """What a line may switch on for the whole process."""

    stubborn: bool = False
    login: bool = False


@dataclass(frozen=True)
class Stage:
    """Where a script plays."""

    connection: Connection
    session: Session
    turn: Turn
    switches: Switches

    async def say(self, text: str) -> None:
        """One message of the agent."""
        await self.session.say(self.connection, text)

    async def update(self, update: Json) -> None:
        """One `session/update`."""
        await self.session.update(self.connection, update)


class TurnOver(Exception):
    """The script ends here with this stop reason."""

    def __init__(self, stop_reason: str) -> None:
        super().__init__(stop_reason)
        self.stop_reason = stop_reason


async def play(stage: Stage, commands: list[Command]) -> str:
    """Play a script and answer the stop reason.

    Raises:
        RpcError: when the script says that the prompt fails.
    """
    try:
        for command in commands:
            await _HANDLERS[command.name](stage, *command.arguments)
            if stage.turn.cancelled:
                return "cancelled"
    except TurnOver as over:
        return over.stop_reason
    return "end_turn"


async def garbage(connection: Connection, lines: int) -> None:
    """Send lines that are not JSON, of several kinds in turn."""
    for number in range(lines):
        await connection.raw(_GARBAGE[number % len(_GARBAGE)])


async def _say(stage: Stage, text: str) -> None:
    await stage.say(text)


async def _think(stage: Stage, text: str) -> None:
    await stage.session.chunk(stage.connection, "agent_thought_chunk", new_id("thought"), text)


async def chunks(stage: Stage, word: str, count: int, delay_s: float) -> None:
    """`count` chunks `word i `, counted from 1, of one message; a cancel that the turn sees ends them."""
    message_id, sent = new_id("msg"), []
    for number in range(1, count + 1):
        if number > 1:
            await stage.turn.wait(delay_s)
        if stage.turn.cancelled:
            break
        sent.append(f"{word} {number} ")
        await stage.session.chunk(stage.connection, "agent_message_chunk", message_id, sent[-1])
    if sent:
        stage.session.memory.add(Entry("agent", "".join(sent), message_id))


async def _stream(stage: Stage, count: str, delay_ms: str) -> None:
    await chunks(stage, "chunk", int(count), float(delay_ms) / 1000)


async def _sleep(stage: Stage, seconds: str) -> None:
    await stage.turn.wait(float(seconds))


async def _deaf(stage: Stage, seconds: str) -> None:
    stage.turn.deaf = True
    await stage.turn.wait(float(seconds))
    stage.turn.deaf = False


async def _late(stage: Stage, seconds: str) -> None:
    await stage.turn.wait(LATE_WAITS_S)
    if stage.turn.cancelled:
        await asyncio.sleep(float(seconds))


async def _lie(stage: Stage, seconds: str) -> None:
    await stage.turn.wait(float(seconds))
    if stage.turn.cancelled:
        raise TurnOver("end_turn")


async def _tool(stage: Stage, title: str, seconds: str) -> None:
    call_id = new_id("call")
    start: Json = {"sessionUpdate": "tool_call", "toolCallId": call_id, "title": title, "kind": "execute"}
    await stage.update({**start, "status": "pending", "rawInput": {"command": title}})
    change: Json = {"sessionUpdate": "tool_call_update", "toolCallId": call_id}
    await stage.update({**change, "status": "in_progress"})
    await stage.turn.wait(float(seconds))
    status = "failed" if stage.turn.cancelled else "completed"
    text = {"type": "text", "text": f"{title}: {status}"}
    await stage.update({**change, "status": status, "content": [{"type": "content", "content": text}]})


def _start_child(seconds: str) -> int:
    nothing = subprocess.DEVNULL
    child = subprocess.Popen(
        ["sleep", seconds], stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=True
    )
    threading.Thread(target=child.wait, name=f"child-{child.pid}", daemon=True).start()
    return child.pid


async def _spawn(stage: Stage, seconds: str) -> None:
    await stage.say(f"pid {_start_child(seconds)}")


async def _ask(stage: Stage, title: str) -> None:
    call: Json = {"toolCallId": new_id("call"), "title": title, "kind": "execute", "status": "pending"}
    params: Json = {"sessionId": stage.session.id, "toolCall": call, "options": _OPTIONS}
    asking = asyncio.create_task(stage.connection.request("session/request_permission", params))
    reply = await _unless_cancelled(stage.turn, asking, ASK_AFTER_CANCEL_S)
    await stage.say(f"outcome: {_outcome(reply)}")


async def _unless_cancelled(turn: Turn, work: asyncio.Task[Json], grace_s: float) -> Json | None:
    """The result of the work, or None when a cancel has been seen and `grace_s` have passed since."""
    cancel = asyncio.create_task(turn.wait_for_cancel())
    try:
        await asyncio.wait({work, cancel}, return_when=asyncio.FIRST_COMPLETED)
        if not work.done() and grace_s:
            await asyncio.wait({work}, timeout=grace_s)
        return work.result() if work.done() else None
    finally:
        cancel.cancel()
        work.cancel()
        await asyncio.gather(cancel, work, return_exceptions=True)


def _outcome(reply: Json | None) -> str:
    if reply is None:
        return "none"
    if "error" in reply:
        error = reply["error"]
        return f"error {error.get('code')} {error.get('message')}" if isinstance(error, dict) else "error"
    result = reply.get("result")
    outcome = result.get("outcome") if isinstance(result, dict) else None
    if not isinstance(outcome, dict):
        return "malformed"
    return " ".join(str(outcome[key]) for key in ("outcome", "optionId") if key in outcome)


async def _mcp(stage: Stage, tool: str, arguments: str) -> None:
    try:
        parsed = json.loads(arguments or "{}")
        calling = asyncio.create_task(stage.session.toolbox.call(tool, parsed))
        result = await _unless_cancelled(stage.turn, calling, 0)
    except ValueError as error:
        result = {"error": {"message": f"the arguments are not JSON: {error}"}}
    except McpFailure as failure:
        result = {"error": failure.payload()}
    if result is not None:
        await stage.say(f"mcp-result {json.dumps(result)}")


async def _exit(stage: Stage, code: str) -> None:
    os._exit(int(code) & 0xFF)


async def _crash(stage: Stage) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


async def _garbage(stage: Stage, lines: str) -> None:
    await garbage(stage.connection, int(lines))


async def _flood(stage: Stage, size: str) -> None:
    update: Json = {"sessionUpdate": "agent_message_chunk", "messageId": new_id("msg")}
    content: Json = {"type": "text", "text": ""}
    params: Json = {"sessionId": stage.session.id, "update": {**update, "content": content}}
    frame: Json = {"jsonrpc": "2.0", "method": "session/update", "params": params}
    content["text"] = "x" * max(1, int(size) - len(json.dumps(frame)) - 1)
    await stage.connection.raw(json.dumps(frame).encode())


async def _silent(stage: Stage) -> None:
    await asyncio.get_running_loop().create_future()


async def _lose(stage: Stage, cancels: str) -> None:
    stage.turn.lost_cancels += int(cancels)


async def _echo_after(stage: Stage, count: str) -> None:
    stage.turn.echo_after += int(count)


async def _wake(stage: Stage, seconds: str, text: str) -> None:
    async def wake() -> None:
        await asyncio.sleep(float(seconds))
        await stage.session.until_idle()
        await stage.say(text)

    stage.connection.start(wake())


async def _stubborn(stage: Stage) -> None:
    stage.switches.stubborn = True


async def _fail(stage: Stage, code: str, text: str) -> None:
    raise RpcError(int(code), text)


async def _update(stage: Stage, update: str) -> None:
    await stage.update(json.loads(update))


async def _login(stage: Stage) -> None:
    stage.switches.login = True


async def _recall(stage: Stage) -> None:
    earlier = [prompt.replace("\n", " / ") for prompt in stage.session.memory.prompts()[:-1]]
    await stage.say(f"recall: {' | '.join(earlier)}")


_HANDLERS: dict[str, Callable[..., Awaitable[None]]] = {
    "echo": _say,
    "say": _say,
    "think": _think,
    "stream": _stream,
    "sleep": _sleep,
    "deaf": _deaf,
    "late": _late,
    "lie": _lie,
    "tool": _tool,
    "spawn": _spawn,
    "ask": _ask,
    "mcp": _mcp,
    "exit": _exit,
    "crash": _crash,
    "garbage": _garbage,
    "flood": _flood,
    "silent": _silent,
    "lose": _lose,
    "echo-after": _echo_after,
    "wake": _wake,
    "stubborn": _stubborn,
    "fail": _fail,
    "update": _update,
    "login": _login,
    "recall": _recall,
}

"""OpenAI's responses: what a request asks, and an answer in that format, streamed or whole."""

import json
import time
from dataclasses import dataclass, field

from aiohttp import web

from .answering import EventStream, Exchange, pieces, texts, user_text, words
from .directives import Action, Asked
from .tools import Call, Json, Tool

USAGE = {
    "input_tokens": 100,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": 10,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 110,
}


def read(body: Json) -> Asked:
    """What the request asks."""
    tools = tuple(tool for offered in body.get("tools") or [] for tool in _tools(offered))
    given = body.get("input") or []
    if isinstance(given, str):
        return Asked(given, (), tools)
    text, results = "", list[str]()
    for item in given:
        kind = item.get("type", "message")
        if kind.endswith("_output"):
            results.append(_output(item.get("output")))
        elif (
            kind == "message"
            and item.get("role") == "user"
            and (said := user_text(texts(item.get("content"))))
        ):
            text, results = said, []
    return Asked(text, tuple(results), tools)


def _output(output: object) -> str:
    if isinstance(output, list):
        return " ".join(texts(output))
    return output if isinstance(output, str) else json.dumps(output)


def _tools(offered: Json) -> list[Tool]:
    kind = offered.get("type") or "?"
    if kind == "namespace":
        group = offered["name"]
        return [
            Tool(f"{group}/{one['name']}", one.get("parameters") or {}, "function", one["name"], group)
            for one in offered.get("tools") or []
        ]
    if kind in ("function", "custom"):
        return [Tool(offered["name"], offered.get("parameters") or {}, kind)]
    return [Tool(kind, {}, kind)]


@dataclass
class _Writer:
    """Collects the output items and, when streamed, sends their events."""

    exchange: Exchange
    stream: EventStream | None
    output: list[Json] = field(default_factory=list)

    async def event(self, name: str, **fields: object) -> None:
        if self.stream:
            await self.stream.send({"type": f"response.{name}", **fields})

    async def begin(self, item: Json) -> None:
        await self.event("output_item.added", output_index=len(self.output), item=item)

    async def end(self, item: Json) -> None:
        await self.event("output_item.done", output_index=len(self.output), item=item)
        self.output.append(item)


async def answer(exchange: Exchange) -> web.StreamResponse:
    """Answer the request as its plan says."""
    base: Json = {
        "id": f"resp_{exchange.number}",
        "object": "response",
        "created_at": int(time.time()),
        "model": exchange.body.get("model"),
        "status": "in_progress",
        "output": [],
    }
    stream = EventStream(exchange.request, named=True) if exchange.streamed else None
    writer = _Writer(exchange, stream)
    if stream:
        await stream.start()
    await writer.event("created", response=base)
    await _write(writer)
    if exchange.plan.action is Action.CUT:
        exchange.drop()
        return stream.response if stream else web.Response()
    finished = base | {"status": "completed", "output": writer.output, "usage": USAGE}
    await writer.event("completed", response=finished)
    return stream.response if stream else web.json_response(finished)


async def _write(writer: _Writer) -> None:
    plan = writer.exchange.plan
    if plan.action is Action.THINK:
        await _think(writer, plan.seconds)
    if plan.call:
        await _call(writer, plan.call)
    else:
        await _say(writer)


async def _think(writer: _Writer, seconds: float) -> None:
    item: Json = {"type": "reasoning", "id": f"rs_{writer.exchange.number}", "summary": []}
    where = {"item_id": item["id"], "output_index": 0, "summary_index": 0}
    await writer.begin(item)
    await writer.event("reasoning_summary_part.added", **where, part={"type": "summary_text", "text": ""})
    thought = ""
    async for word in words(seconds):
        thought += word
        await writer.event("reasoning_summary_text.delta", **where, delta=word)
    summary = [{"type": "summary_text", "text": thought}]
    await writer.end(item | {"summary": summary, "encrypted_content": None})


def _item(number: int, call: Call) -> Json:
    base: Json = {"call_id": f"call_{number}"}
    if call.tool.kind == "local_shell":
        action = {"type": "exec", "command": call.arguments["command"], "timeout_ms": 60_000, "env": {}}
        return base | {
            "type": "local_shell_call",
            "id": f"ls_{number}",
            "status": "completed",
            "action": action,
        }
    if call.tool.kind == "custom":
        given = call.arguments.get("input", call.encoded)
        return base | {
            "type": "custom_tool_call",
            "id": f"ct_{number}",
            "name": call.tool.called,
            "input": given,
        }
    namespace = {"namespace": call.tool.namespace} if call.tool.namespace else {}
    function = {"name": call.tool.called, "arguments": call.encoded, "status": "completed"}
    return base | {"type": "function_call", "id": f"fc_{number}"} | function | namespace


async def _call(writer: _Writer, call: Call) -> None:
    item = _item(writer.exchange.number, call)
    if item["type"] == "function_call":
        where = {"item_id": item["id"], "output_index": len(writer.output)}
        await writer.begin(item | {"arguments": "", "status": "in_progress"})
        await writer.event("function_call_arguments.delta", **where, delta=call.encoded)
        await writer.event("function_call_arguments.done", **where, arguments=call.encoded)
    await writer.end(item)


async def _say(writer: _Writer) -> None:
    message: Json = {
        "type": "message",
        "id": f"msg_{writer.exchange.number}",
        "role": "assistant",
        "content": [],
    }
    where = {"item_id": message["id"], "output_index": len(writer.output), "content_index": 0}
    await writer.begin(message | {"status": "in_progress"})
    empty = {"type": "output_text", "text": "", "annotations": []}
    await writer.event("content_part.added", **where, part=empty)
    said = ""
    async for piece in pieces(writer.exchange.plan):
        said += piece
        await writer.event("output_text.delta", **where, delta=piece)
    if writer.exchange.plan.action is Action.CUT:
        return
    await writer.event("output_text.done", **where, text=said)
    await writer.event("content_part.done", **where, part=empty | {"text": said})
    await writer.end(message | {"status": "completed", "content": [empty | {"text": said}]})

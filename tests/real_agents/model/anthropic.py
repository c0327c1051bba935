"""Anthropic's messages: what a request asks, and an answer in that format, streamed or whole."""

from aiohttp import web

from .answering import EventStream, Exchange, pieces, texts, user_text, whole_text, words
from .directives import Action, Asked
from .tools import Call, Json, Tool

USAGE = {
    "input_tokens": 100,
    "output_tokens": 1,
    "cache_creation_input_tokens": 0,
    "cache_read_input_tokens": 0,
}
SIGNATURE = "bW9jaw=="


def read(body: Json) -> Asked:
    """What the request asks."""
    named = [tool for tool in body.get("tools") or [] if tool.get("name")]
    tools = tuple(Tool(tool["name"], tool.get("input_schema") or {}) for tool in named)
    text, results = "", list[str]()
    for message in body.get("messages") or []:
        content = message.get("content") if message.get("role") == "user" else []
        for part in content if isinstance(content, list) else [{"type": "text", "text": content}]:
            if part.get("type") == "tool_result":
                results.append(" ".join(texts(part.get("content"))))
            elif said := user_text(texts([part])):
                text, results = said, []
    return Asked(text, tuple(results), tools)


async def answer(exchange: Exchange) -> web.StreamResponse:
    """Answer the request as its plan says."""
    plan = exchange.plan
    message: Json = {
        "id": f"msg_{exchange.number}",
        "type": "message",
        "role": "assistant",
        "model": exchange.body.get("model"),
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": USAGE,
    }
    stop = "tool_use" if plan.call else "end_turn"
    if exchange.streamed:
        return await _stream(exchange, message, stop)
    if plan.call:
        content = _called(exchange, plan.call) | {"input": plan.call.arguments}
    else:
        content = {"type": "text", "text": await whole_text(plan)}
    return web.json_response(message | {"content": [content], "stop_reason": stop})


def _called(exchange: Exchange, call: Call) -> Json:
    return {"type": "tool_use", "id": f"toolu_{exchange.number}", "name": call.tool.called, "input": {}}


async def _stream(exchange: Exchange, message: Json, stop: str) -> web.StreamResponse:
    stream = EventStream(exchange.request, named=True)
    plan = exchange.plan
    await stream.start()
    await stream.send({"type": "message_start", "message": message})
    index = 0
    if plan.action is Action.THINK:
        await _think(stream, plan.seconds)
        index = 1
    if plan.call:
        await _begin(stream, index, _called(exchange, plan.call))
        await _delta(stream, index, {"type": "input_json_delta", "partial_json": plan.call.encoded})
    else:
        await _begin(stream, index, {"type": "text", "text": ""})
        async for piece in pieces(plan):
            await _delta(stream, index, {"type": "text_delta", "text": piece})
    if plan.action is Action.CUT:
        exchange.drop()
        return stream.response
    await stream.send({"type": "content_block_stop", "index": index})
    end = {"stop_reason": stop, "stop_sequence": None}
    await stream.send({"type": "message_delta", "delta": end, "usage": {"output_tokens": 10}})
    await stream.send({"type": "message_stop"})
    return stream.response


async def _think(stream: EventStream, seconds: float) -> None:
    await _begin(stream, 0, {"type": "thinking", "thinking": "", "signature": ""})
    async for word in words(seconds):
        await _delta(stream, 0, {"type": "thinking_delta", "thinking": word})
    await _delta(stream, 0, {"type": "signature_delta", "signature": SIGNATURE})
    await stream.send({"type": "content_block_stop", "index": 0})


async def _begin(stream: EventStream, index: int, block: Json) -> None:
    await stream.send({"type": "content_block_start", "index": index, "content_block": block})


async def _delta(stream: EventStream, index: int, delta: Json) -> None:
    await stream.send({"type": "content_block_delta", "index": index, "delta": delta})

"""OpenAI's chat completions: what a request asks, and an answer in that format, streamed or whole."""

import time

from aiohttp import web

from .answering import EventStream, Exchange, pieces, texts, user_text, whole_text, words
from .directives import Action, Asked
from .tools import Call, Json, Tool

USAGE = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}


def read(body: Json) -> Asked:
    """What the request asks."""
    functions = [tool["function"] for tool in body.get("tools") or [] if tool.get("function")]
    tools = tuple(Tool(function["name"], function.get("parameters") or {}) for function in functions)
    text, results = "", list[str]()
    for message in body.get("messages") or []:
        if message.get("role") == "tool":
            results.append(" ".join(texts(message.get("content"))))
        elif message.get("role") == "user" and (said := user_text(texts(message.get("content")))):
            text, results = said, []
    return Asked(text, tuple(results), tools)


async def answer(exchange: Exchange) -> web.StreamResponse:
    """Answer the request as its plan says."""
    base: Json = {
        "id": f"chatcmpl-{exchange.number}",
        "created": int(time.time()),
        "model": exchange.body.get("model"),
    }
    if exchange.streamed:
        return await _stream(exchange, base | {"object": "chat.completion.chunk"})
    plan = exchange.plan
    if plan.call:
        message: Json = {"role": "assistant", "content": None, "tool_calls": [_called(exchange, plan.call)]}
    else:
        message = {"role": "assistant", "content": await whole_text(plan)}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if plan.call else "stop"}
    return web.json_response(base | {"object": "chat.completion", "choices": [choice], "usage": USAGE})


def _called(exchange: Exchange, call: Call) -> Json:
    function = {"name": call.tool.called, "arguments": call.encoded}
    return {"index": 0, "id": f"call_{exchange.number}", "type": "function", "function": function}


async def _stream(exchange: Exchange, base: Json) -> web.StreamResponse:
    stream = EventStream(exchange.request, named=False)
    await stream.start()

    async def chunk(delta: Json, finish: str | None = None) -> None:
        await stream.send(base | {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    plan = exchange.plan
    await chunk({"role": "assistant", "content": ""})
    if plan.call:
        await chunk({"tool_calls": [_called(exchange, plan.call)]})
    else:
        if plan.action is Action.THINK:
            async for word in words(plan.seconds):
                await chunk({"reasoning_content": word})
        async for piece in pieces(plan):
            await chunk({"content": piece})
    if plan.action is Action.CUT:
        exchange.drop()
        return stream.response
    await chunk({}, "tool_calls" if plan.call else "stop")
    await stream.send(base | {"choices": [], "usage": USAGE})
    await stream.raw("data: [DONE]\n\n")
    return stream.response

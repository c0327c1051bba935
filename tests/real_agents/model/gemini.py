"""Gemini's generateContent: what a request asks, and an answer in that format, streamed or whole."""

import json
from typing import Any

from aiohttp import web

from .answering import EventStream, Exchange, pieces, user_text, whole_text, words
from .directives import Action, Asked, Plan
from .tools import Json, Tool, filled

USAGE = {"promptTokenCount": 100, "candidatesTokenCount": 10, "totalTokenCount": 110}
RESULT_CHARACTERS = 2000


def read(body: Json) -> Asked:
    """What the request asks."""
    contents = body.get("contents") or []
    text, results = "", list[str]()
    for content in [contents] if isinstance(contents, dict) else contents:
        if content.get("role", "user") not in ("user", "function"):
            continue
        for part in content.get("parts") or []:
            if part.get("functionResponse"):
                results.append(json.dumps(part["functionResponse"].get("response"))[:RESULT_CHARACTERS])
            elif not part.get("thought") and (said := user_text([part.get("text") or ""])):
                text, results = said, []
    return Asked(text, tuple(results), _tools(body))


def _tools(body: Json) -> tuple[Tool, ...]:
    declared: list[Json] = []
    for group in body.get("tools") or []:
        declared += group.get("functionDeclarations") or group.get("function_declarations") or []
    return tuple(
        Tool(one["name"], one.get("parametersJsonSchema") or one.get("parameters") or {}) for one in declared
    )


async def answer(exchange: Exchange) -> web.StreamResponse:
    """Answer the request as its plan says; a request for JSON by a schema gets JSON that fits the schema."""
    plan = _structured(exchange.body) or exchange.plan
    request = exchange.request
    called = [_called(exchange, plan)] if plan.call else []
    if "streamGenerateContent" not in request.path and "alt=sse" not in request.query_string:
        parts = called or [{"text": await whole_text(plan)}]
        return web.json_response(_chunk(exchange, parts, "STOP"))
    stream = EventStream(request, named=False)
    await stream.start()
    if called:
        await stream.send(_chunk(exchange, called, "STOP"))
        return stream.response
    if plan.action is Action.THINK:
        async for word in words(plan.seconds):
            await stream.send(_chunk(exchange, [{"text": f"**Thinking** {word}", "thought": True}]))
    async for piece in pieces(plan):
        await stream.send(_chunk(exchange, [{"text": piece}]))
    if plan.action is Action.CUT:
        exchange.drop()
    else:
        await stream.send(_chunk(exchange, [{"text": ""}], "STOP"))
    return stream.response


def _structured(body: Json) -> Plan | None:
    config = body.get("generationConfig") or {}
    schema = config.get("responseJsonSchema") or config.get("responseSchema")
    if schema or config.get("responseMimeType") == "application/json":
        return Plan(Action.JSON, json.dumps(filled(schema or {}, {})))
    return None


def _called(exchange: Exchange, plan: Plan) -> Json:
    assert plan.call is not None
    call = {"id": f"call_{exchange.number}", "name": plan.call.tool.called, "args": plan.call.arguments}
    return {"functionCall": call}


def _chunk(exchange: Exchange, parts: list[Json], finish: str = "") -> Json:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
    if finish:
        candidate["finishReason"] = finish
    return {
        "candidates": [candidate],
        "usageMetadata": USAGE,
        "modelVersion": "mock",
        "responseId": f"r{exchange.number}",
    }

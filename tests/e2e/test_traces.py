"""Traces reach a collector when an endpoint is configured; a dead one changes nothing."""

import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.e2e.kandev import Kandev
from tests.e2e.scenes import add, turns_over

pytestmark = pytest.mark.proves("OBSERVE-traces")
SECRET = "a-word-that-only-the-agent-reads"


class Collector:
    """What was sent to it, span by span."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.url = ""

    async def take(self, request: web.Request) -> web.Response:
        body = await request.read()
        assert request.headers.get("Content-Encoding") is None
        self.bodies.append(body)
        return web.Response()

    @property
    def spans(self) -> list[Span]:
        requests = [ExportTraceServiceRequest.FromString(body) for body in self.bodies]
        return [
            s for r in requests for of in r.resource_spans for scope in of.scope_spans for s in scope.spans
        ]

    def named(self, name: str) -> list[Span]:
        return [span for span in self.spans if span.name == name]


@asynccontextmanager
async def collecting() -> AsyncIterator[Collector]:
    collector = Collector()
    app = web.Application()
    app.router.add_post("/v1/traces", collector.take)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    collector.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield collector
    finally:
        await runner.cleanup()


def about(span: Span) -> dict[str, object]:
    return {a.key: getattr(a.value, str(a.value.WhichOneof("value"))) for a in span.attributes}


async def test_a_message_is_traced_from_the_door_to_the_agent(tmp_path: Path) -> None:
    async with collecting() as collector:
        async with Kandev(tmp_path / "home", {"KANDEV_OTLP_ENDPOINT": f"{collector.url}/"}) as kandev:
            task_id, session_id = await kandev.session("say hello")
            async with kandev.watching(session_id) as events:
                await turns_over(events)
                await add(kandev, task_id, session_id, f"say {SECRET}")
                await turns_over(events, 2)
            await kandev.stop()
        (asked,) = collector.named("message.add")
        of_it = [span for span in collector.spans if span.trace_id == asked.trace_id]
        assert {"message.add", "decide", "Prompt", "agentctl POST"} <= {span.name for span in of_it}
        assert about(asked) == {
            "kandev.task_id": task_id,
            "kandev.session_id": session_id,
            "kandev.door": "http",
            "kandev.code": "ok",
        }
        prompt = next(span for span in of_it if span.name == "Prompt")
        assert about(prompt)["kandev.prompt_generation"] == 2
        parents = {span.span_id: span for span in of_it}
        assert parents[prompt.parent_span_id].name == "decide"
        assert parents[parents[prompt.parent_span_id].parent_span_id] == asked
        turns_end = [
            span for span in collector.named("decide") if "Ended" in str(about(span)["kandev.inputs"])
        ]
        assert turns_end and turns_end[0].trace_id != asked.trace_id, "an agent's doing is nobody's request"
    assert not any(SECRET.encode() in body for body in collector.bodies), "what was written is not traced"


async def test_a_collector_that_is_down_holds_nothing_up_and_fills_no_log(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:  # accepts, and never answers
        endpoint = f"http://127.0.0.1:{deaf.getsockname()[1]}"
        async with Kandev(tmp_path / "home", {"KANDEV_OTLP_ENDPOINT": endpoint}) as kandev:
            _, session_id = await kandev.session("say hello")
            async with kandev.watching(session_id) as events:
                await turns_over(events)
            begun = time.monotonic()
            assert await kandev.stop() == 0
            assert time.monotonic() - begun < 20
            log = (kandev.home / "backend.err").read_text()
    assert "Traceback" not in log and "export" not in log.lower()
    assert log.count("traces cannot be sent") == 1, "said, and said once"

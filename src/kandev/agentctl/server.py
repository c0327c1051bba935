"""agentctl's HTTP interface: paths to instances. Every 4xx carries a `wire.Refusal`.

Not here: the checks before a handler (`guarding`), what an instance does.
"""

import os
import time

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from kandev.agentctl.activity import Activity
from kandev.agentctl.guarding import Guard, answer, read
from kandev.agentctl.instance import Instance
from kandev.agentctl.instances import Instances
from kandev.agentctl.refusals import Refused, invalid, unknown_instance
from kandev.agentctl.stream import Window, serve
from kandev.agentctl.tunnel.door import McpDoor
from kandev.agentctl.tunnel.lane import serve_lane
from kandev.wire import agentctl as wire


class Doors:
    """The handlers. `window` is what of a stream may wait for an acknowledgement."""

    def __init__(
        self,
        instances: Instances,
        guard: Guard,
        activity: Activity,
        *,
        version: str,
        incarnation: str,
        window: Window,
    ) -> None:
        self._instances = instances
        self._guard = guard
        self._activity = activity
        self._version = version
        self._incarnation = incarnation
        self._window = window
        self._started = time.monotonic()

    def app(self) -> Starlette:
        door = self._guard.door
        one = "/api/v1/instances/{id}"
        base = "/instances/{id}/api/v1"
        return Starlette(
            routes=[
                Route("/health", self.health, methods=["GET"]),
                Route("/api/v1/instances", door(self.create), methods=["POST"]),
                Route("/api/v1/instances", door(self.list, acting=False), methods=["GET"]),
                Route(one, door(self.get, acting=False), methods=["GET"]),
                Route(one, door(self.delete), methods=["DELETE"]),
                Route(f"{base}/acp/prompt", door(self.prompt, epoch=False), methods=["POST"]),
                Route(f"{base}/acp/cancel", door(self.cancel), methods=["POST"]),
                Route(f"{base}/acp/dispatch/{{dispatch_id}}", door(self.dispatch), methods=["GET"]),
                Route(f"{base}/acp/permissions/{{request_id}}", door(self.permission), methods=["POST"]),
                Route(f"{base}/stop", door(self.stop), methods=["POST"]),
                Route(f"{base}/sleep", door(self.sleep), methods=["POST"]),
                WebSocketRoute(f"{base}/acp/stream", self.stream),
                Route("/instances/{id}/mcp", McpDoor(self._guard, lambda id: self._instances.get(id).tunnel)),
            ],
            exception_handlers={404: _no_path, 405: _no_method},
        )

    def _instance(self, request: Request | WebSocket) -> Instance:
        return self._instances.get(request.path_params["id"])

    async def health(self, request: Request) -> Response:
        """Without a token, for probes; it is no sign of a backend."""
        try:
            self._guard.check_host(request)
        except Refused as refused:
            return answer(refused.refusal, refused.status)
        return answer(
            wire.Health(
                version=self._version,
                instances=len(self._instances),
                uptime_s=time.monotonic() - self._started,
                pid=os.getpid(),
                incarnation=self._incarnation,
            )
        )

    async def create(self, request: Request) -> Response:
        return answer(await self._instances.create(await read(request, wire.CreateInstance)), 201)

    async def list(self, request: Request) -> Response:
        return answer(wire.Instances(instances=[instance.describe() for instance in self._instances.all()]))

    async def get(self, request: Request) -> Response:
        return answer(self._instance(request).describe())

    async def delete(self, request: Request) -> Response:
        force = request.query_params.get("force") == "true"
        return answer(await self._instances.delete(request.path_params["id"], force=force))

    async def stop(self, request: Request) -> Response:
        asked = await read(request, wire.StopInstance)
        return answer(await self._instances.stop(request.path_params["id"], force=asked.force))

    async def sleep(self, request: Request) -> Response:
        asked = await read(request, wire.Sleep)
        return answer(await self._instance(request).sleep(asked.after_seq))

    async def prompt(self, request: Request) -> Response:
        instance = self._instance(request)
        asked = await read(request, wire.Prompt)
        accepted = await instance.dispatching.prompt(
            asked, lambda: self._guard.check_epoch(request, acting=True)
        )
        return answer(accepted, 202)

    async def dispatch(self, request: Request) -> Response:
        generation = _number(request.query_params.get("prompt_generation"), "prompt_generation")
        dispatch_id = request.path_params["dispatch_id"]
        return answer(self._instance(request).dispatching.state(dispatch_id, generation))

    async def cancel(self, request: Request) -> Response:
        instance = self._instance(request)
        return answer(await instance.cancel(await read(request, wire.Cancel)))

    async def permission(self, request: Request) -> Response:
        instance = self._instance(request)
        await instance.permissions.answer(
            request.path_params["request_id"], await read(request, wire.AnswerPermission)
        )
        return answer({})

    async def stream(self, websocket: WebSocket) -> None:
        """Two lanes: the journal's frames, and the tool calls of the instance's agent."""
        try:
            self._guard.check(websocket, acting=True)
            instance = self._instance(websocket)
            if websocket.query_params.get("lane") == "mcp":
                if instance.tunnel.over:
                    raise Refused(409, "ended", "No tools are served for this execution (any more).")
                await self._lane(websocket, instance)
                return
            after = _number(websocket.query_params.get("after", "0"), "after")
            journal_id = websocket.query_params.get("journal_id")
            if journal_id not in (None, instance.journal.meta.journal_id):
                raise unknown_instance(websocket.path_params["id"])
        except Refused as refused:
            await websocket.send_denial_response(answer(refused.refusal, refused.status))
            return
        with self._activity.of_a_client():
            await websocket.accept()
            await serve(websocket, instance, after, self._window)

    async def _lane(self, websocket: WebSocket, instance: Instance) -> None:
        with self._activity.of_a_client():
            await websocket.accept()
            await serve_lane(websocket, instance.tunnel)


def _number(text: str | None, name: str) -> int:
    if text is None or not text.isascii() or not text.isdigit():
        raise invalid(f"{name} is a number of at least 0.")
    return int(text)


async def _no_path(request: Request, error: Exception) -> Response:
    return answer(wire.Refusal(reason="invalid", message=f"agentctl has no path {request.url.path!r}."), 404)


async def _no_method(request: Request, error: Exception) -> Response:
    return answer(
        wire.Refusal(reason="invalid", message=f"{request.method} is not for {request.url.path!r}."), 405
    )

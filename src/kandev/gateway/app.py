"""The gateway as one ASGI application: both doors behind one guard.

Not here: the server around it, and which address it listens on (`bootstrap`).
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import WebSocketRoute

from kandev.gateway.accepted import Accepted
from kandev.gateway.dispatch import Requests
from kandev.gateway.guard import Guard, GuardSettings
from kandev.gateway.http import Http, unrouted
from kandev.gateway.hub import Hub
from kandev.gateway.metrics import Metrics
from kandev.gateway.pages import About
from kandev.gateway.streams import Streams
from kandev.gateway.websocket import Door
from kandev.usecases.context import Context

__all__ = ["About", "GuardSettings", "create_app"]


def create_app(
    ctx: Context,
    *,
    hub: Hub,
    about: About,
    guard: GuardSettings,
    metrics: Metrics | None = None,
    close_s: float = 5.0,
) -> Starlette:
    """`hub` is the store's publisher. `close_s`: seconds that accepted requests get at the end, by the
    lifespan. Whoever waits for an answer over HTTP is let go by `app.state.leave()`."""
    metrics = metrics or Metrics()
    hub.count_with(metrics)
    accepted = Accepted()
    requests = Requests(ctx, metrics)
    door = Door(requests, Streams(ctx, hub), hub, accepted)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await accepted.close(close_s)

    app = Starlette(
        routes=[
            *Http(requests, accepted, metrics, about, guard).routes(),
            WebSocketRoute("/ws", door.serve),
        ],
        middleware=[Middleware(Guard, settings=guard)],
        exception_handlers={HTTPException: unrouted},
        lifespan=lifespan,
    )
    app.state.leave = accepted.leave
    return app

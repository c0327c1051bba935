"""Builds the program from its parts, runs it, and takes it down: the only module that knows concrete
classes.

`serve` is the whole life of a backend: lock the home, open the store, take the epoch, make the actors of
what is under way, listen, say "ready"; then what may take longer; at the end let go of everything in the
reverse order. Not here: any rule.
"""

import asyncio
import contextlib
import json
import logging
import os
import secrets
import signal
import socket
import sys
import webbrowser
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import structlog
import uvicorn
from starlette.applications import Starlette

from kandev import __version__
from kandev.config import Settings
from kandev.core.errors import KandevError
from kandev.execution.catalogue import PathCatalogue
from kandev.execution.clock import SystemClock, TimeIds
from kandev.execution.local import LocalAgents
from kandev.execution.seen import has_journals, read_seen
from kandev.execution.sidecar import Sidecar, environment_for
from kandev.execution.worktrees import GitWorktrees
from kandev.gateway.app import create_app
from kandev.gateway.connections import BoundedHttp, BoundedWebSocket
from kandev.gateway.exhaustion import tell_exhaustion
from kandev.gateway.guard import GuardSettings
from kandev.gateway.hub import Hub
from kandev.gateway.pages import About
from kandev.gateway.sparing import Sparing
from kandev.home import BACKEND, InUse, announced, locked, stopped_backend
from kandev.logs import log_to_stderr
from kandev.mcp.server import AgentTools
from kandev.ports.store import Store
from kandev.runtime.booking import Stamp
from kandev.runtime.health import watch
from kandev.runtime.orphans import end_orphans
from kandev.runtime.outer import Outer
from kandev.runtime.registry import Sessions
from kandev.runtime.restored import Seen, settle, went_back
from kandev.storage.opening import open_store
from kandev.tracing import tracing
from kandev.usecases.context import Context
from kandev.usecases.first_start import add_found_profiles, first_start
from kandev.usecases.owed_steps import OwedSteps

log = structlog.get_logger(__name__)

SHUTDOWN_S = 5.0
"""For requests under way when the backend ends; then whoever waits is told so."""
LAST_WORDS_S = 2
"""For that to be told."""
STARTUP_S = 10.0
"""For looking at agentctl and at PATH behind the ready line."""
NOTIFICATIONS_KEPT = 2000
"""Per stream, for replay; older gaps are answered with a reload."""
SETTLING_S = 120.0
"""For every session of a restored database, once."""
PRUNE_S = 300.0
BACKLOG = 512
"""Connections that wait to be accepted."""
LARGEST_FRAME = 16 * 1024 * 1024
"""Of a WebSocket client, in bytes."""


class CannotStart(Exception):
    """One sentence: what is wrong and what to do."""


def serve(settings: Settings) -> int:
    """Runs until SIGTERM or Ctrl-C; the exit code. A start that cannot be is one sentence on stderr."""
    log_to_stderr(settings.log_level)
    logging.getLogger("uvicorn.error").addFilter(Sparing())
    try:
        with _home_lock(settings.home):
            return asyncio.run(_serve(settings))
    except (CannotStart, KandevError) as wrong:
        print(f"kandev: {wrong}", file=sys.stderr)  # noqa: T201 - the sentence a person reads
        return 1


@contextlib.contextmanager
def _home_lock(home: Path) -> Iterator[None]:
    """One backend per home."""
    with contextlib.ExitStack() as held:
        try:
            held.enter_context(locked(home, BACKEND))
        except InUse:
            if (pid := stopped_backend(home)) is None:
                fix = "stop it"
            else:
                fix = f"process {pid} is it, and stands still: `kill -CONT {pid}` or `kill -KILL {pid}`"
            raise CannotStart(
                f"another backend uses the home {home}: {fix}, or choose another home with --home."
            ) from None
        except OSError as error:
            raise CannotStart(f"{error.filename} cannot be used ({error.strerror}): make it yours.") from None
        yield


def _listen(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # Named, for asyncio sets TCP_NODELAY only then: without it each answer waits 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host, settings.port))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise CannotStart(
            f"{settings.host}:{settings.port} cannot be listened on ({error.strerror}): "
            "choose another port with --port."
        ) from None
    listener.setblocking(False)
    return listener


@dataclass(frozen=True)
class _House:
    """The parts that live as long as the backend."""

    ctx: Context
    agents: LocalAgents
    sessions: Sessions
    epoch: int
    taken_over: asyncio.Event
    """Another backend has this home now."""


@contextlib.asynccontextmanager
async def _house(settings: Settings, hub: Hub) -> AsyncIterator[_House]:
    """Store, agents and actors, taken down in the reverse order."""
    clock, ids = SystemClock(), TimeIds()
    store = await open_store(
        str(settings.database_file), publisher=hub, commit_s=settings.deadlines.commit_s, clock=clock
    )
    try:
        sidecar = _sidecar(settings)
        seen = await _settled(settings, store, sidecar, Stamp(clock.now(), ids, settings.deadlines.queue_max))
        tools = AgentTools()
        agents = LocalAgents(sidecar, settings.deadlines.agentctl_call_s, tools)
        epoch = await store.write(lambda tx: tx.next_epoch(seen.epoch))
        store.own(epoch)
        await agents.attach(epoch)
        worktrees = GitWorktrees(settings.home, deadline=settings.deadlines.worktree_s)
        outer = Outer(store, agents, worktrees, clock, ids, settings.deadlines)
        async with _attached(agents), Sessions(outer) as sessions:
            catalogue = PathCatalogue(os.environ)
            ctx = Context(store, sessions, worktrees, catalogue, clock, ids, settings.deadlines)
            tools.begin(ctx)
            yield _House(ctx, agents, sessions, epoch, store.taken_over)
    finally:
        await store.close()


@contextlib.asynccontextmanager
async def _attached(agents: LocalAgents) -> AsyncIterator[None]:
    """However it ends, no lane and no connection is left."""
    try:
        yield
    finally:
        await agents.abandon()


def _sidecar(settings: Settings) -> Sidecar:
    return Sidecar(settings.home, {**environment_for(settings.home), **settings.agentctl})


async def _settled(settings: Settings, store: Store, sidecar: Sidecar, stamp: Stamp) -> Seen:
    """A database that is older than what happened in this home is made true again: see `runtime.restored`."""
    seen = read_seen(settings.home)
    if not await store.read(lambda tx: went_back(tx, seen)):
        return seen
    deadline = settings.deadlines.teardown_s + STARTUP_S
    if sidecar.find() is not None or has_journals(settings.home):
        # A fresh one first ends whatever an earlier one has left, and so do both when they end.
        await sidecar.ensure(deadline)
        await sidecar.end(deadline)
    if (left := sidecar.find()) is not None:
        raise CannotStart(
            f"the database was restored, and agentctl (process {left.pid}) does not end: "
            "end it by hand, then start again."
        )
    seen = read_seen(settings.home)
    count = await store.write(lambda tx: settle(tx, seen, stamp), SETTLING_S)
    log.warning("the database is older than what happened in this home", sessions_that_were_at_work=count)
    return seen


async def _serve(settings: Settings) -> int:
    hub = Hub()
    ending = _Ending(settings.stop_agents)
    ending.watch(asyncio.get_running_loop())
    tell_exhaustion(asyncio.get_running_loop())
    listener = _listen(settings)
    token = settings.token or (secrets.token_urlsafe(24) if settings.beyond_loopback else None)
    client_token = token or secrets.token_urlsafe(24)
    url = _url(settings.host, listener.getsockname()[1])
    async with tracing(settings.otlp_endpoint, __version__), _house(settings, hub) as house:
        await first_start(house.ctx, mock_command=(sys.executable, "-m", "kandev", "mock-agent"))
        await house.sessions.recover()
        about = About(version=__version__, url=url, home=str(settings.home))
        own = {socket.gethostname().lower()} if settings.beyond_loopback else set[str]()
        names = frozenset({*settings.hosts, *own})
        guard = GuardSettings(settings.host, client_token, require_token=token is not None, hosts=names)
        app = create_app(house.ctx, hub=hub, about=about, guard=guard)
        server = _Server(_web(app), app.state.leave)
        with contextlib.ExitStack() as told:
            # Whoever finds us by this before the server accepts waits in the listener's queue.
            told.enter_context(_announced(settings.home, url, client_token))
            async with asyncio.TaskGroup() as group:
                serving = group.create_task(server.serve([listener]), name="http")
                await server.listening.wait()
                _say_ready(settings, url, client_token if settings.token is None and token else None)
                others = (
                    group.create_task(_behind_the_ready_line(house, settings, url), name="start-up"),
                    group.create_task(OwedSteps(house.ctx).run(), name="steps"),
                    group.create_task(
                        watch(house.ctx.store, house.ctx.clock, house.epoch, house.taken_over.set),
                        name="health",
                    ),
                    group.create_task(ending.when(house.taken_over), name="taken over"),
                )
                await ending.asked.wait()
                told.close()
                for other in others:
                    other.cancel()
                server.should_exit = True
                await serving
        if house.taken_over.is_set():
            await house.sessions.close()
            await house.agents.abandon()
            raise CannotStart(f"another backend has taken over the home {settings.home}; this one has ended.")
        await _let_go(house, settings, ending)
    return 0


def _web(app: Starlette) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        ws=BoundedWebSocket,
        http=BoundedHttp,
        loop="asyncio",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=int(SHUTDOWN_S) + LAST_WORDS_S,
        backlog=BACKLOG,
        ws_max_size=LARGEST_FRAME,
        ws_per_message_deflate=False,
    )


class _Server(uvicorn.Server):
    """Leaves the signals to us and says when it listens. `leave` lets go of whoever waits for an answer."""

    def __init__(self, config: uvicorn.Config, leave: Callable[[], None]) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()
        self._leave = leave

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listening.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        leaving = asyncio.get_running_loop().call_later(SHUTDOWN_S, self._leave)
        try:
            await super().shutdown(sockets)
        finally:
            leaving.cancel()


class _Ending:
    """SIGTERM or Ctrl-C ends the backend; a second Ctrl-C ends running turns too."""

    def __init__(self, stop_agents: bool) -> None:
        self.asked = asyncio.Event()
        self.stop_agents = asyncio.Event()
        if stop_agents:
            self.stop_agents.set()

    def watch(self, loop: asyncio.AbstractEventLoop) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._heard, number)

    async def when(self, event: asyncio.Event) -> None:
        """Ends the backend too."""
        await event.wait()
        self.asked.set()

    def _heard(self, number: int) -> None:
        if self.asked.is_set() and number == signal.SIGINT:
            self.stop_agents.set()
        self.asked.set()


async def _behind_the_ready_line(house: _House, settings: Settings, url: str) -> None:
    """What may take longer. Each failure is logged, and no reason to end."""
    house.sessions.sweep_forever()
    if settings.browser and sys.stdout.isatty():
        await asyncio.to_thread(webbrowser.open, url)
    for work in (lambda: _end_orphans(house), lambda: add_found_profiles(house.ctx)):
        try:
            async with asyncio.timeout(STARTUP_S):
                await work()
        except (KandevError, TimeoutError, OSError) as fault:
            log.warning("start-up", error=str(fault) or type(fault).__name__)
    while True:
        await asyncio.sleep(PRUNE_S)
        with contextlib.suppress(KandevError, OSError):
            await house.ctx.store.write(lambda tx: tx.notifications.prune(NOTIFICATIONS_KEPT))
            await _end_orphans(house)


async def _end_orphans(house: _House) -> None:
    await end_orphans(house.ctx.store, house.agents, STARTUP_S)


async def _let_go(house: _House, settings: Settings, ending: _Ending) -> None:
    """Idle agents end with the backend; running turns go on under agentctl, and one line says so."""
    deadline = settings.deadlines.teardown_s
    try:
        await house.agents.leave_tools()
        await house.sessions.end_agents(idle_only=True, deadline=deadline)
        if ending.stop_agents.is_set():
            await house.sessions.end_agents(idle_only=False, deadline=deadline)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SHUTDOWN_S):
                await _end_orphans(house)
        await house.sessions.close()
        running = await house.agents.close(stop_agents=ending.stop_agents.is_set(), deadline=deadline)
    except KandevError as fault:
        log.warning("agentctl", error=fault.message)
        return
    if running:
        turns = "1 turn goes" if running == 1 else f"{running} turns go"
        print(  # noqa: T201 - the line a person reads
            f"kandev: {turns} on under agentctl; start kandev again to follow, "
            "or end everything with --stop-agents.",
            file=sys.stderr,
        )


def _say_ready(settings: Settings, url: str, shown_token: str | None) -> None:
    if shown_token:
        print(f"kandev: the access token is {shown_token}", file=sys.stderr)  # noqa: T201 - shown once
    ready = {"event": "ready", "url": url, "home": str(settings.home), "pid": os.getpid()}
    print(json.dumps(ready), flush=True)  # noqa: T201 - the contract's first line on stdout


@contextlib.contextmanager
def _announced(home: Path, url: str, token: str) -> Iterator[None]:
    document = {"url": url, "pid": os.getpid(), "token": token, "version": __version__}
    with contextlib.ExitStack() as held:
        try:
            held.enter_context(announced(home, document))
        except OSError as error:
            raise CannotStart(
                f"the home {home} cannot be written ({error.strerror}): make room, or make it writable."
            ) from None
        yield


def _url(host: str, port: int) -> str:
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)  # noqa: S104
    return f"http://{shown}:{port}"

"""The program `kandev agentctl`: the only one of its home, found by `agentctl.json`, ended by SIGTERM or
by loneliness.

Not here: what it serves (`server`).
"""

import argparse
import asyncio
import contextlib
import json
import logging
import os
import secrets
import signal
import socket
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import uvicorn
from starlette.applications import Starlette

from kandev import __version__
from kandev.agentctl import logs, orphaned
from kandev.agentctl.activity import Activity
from kandev.agentctl.exhaustion import tell_exhaustion
from kandev.agentctl.fences import Fences
from kandev.agentctl.guarding import Guard
from kandev.agentctl.home import Home, HomeFailed, Info, start_time
from kandev.agentctl.instances import Instances
from kandev.agentctl.looking import find_marked
from kandev.agentctl.origins import HOME_MARK, INCARNATION_MARK
from kandev.agentctl.process import become_subreaper, end_marked
from kandev.agentctl.programs import Programs
from kandev.agentctl.segments import write_all
from kandev.agentctl.server import Doors
from kandev.agentctl.settings import BadSetting, Settings, from_environment
from kandev.agentctl.stream import Window

log = logging.getLogger(__name__)

TOKEN_VARIABLE = "KANDEV_AGENTCTL_TOKEN"  # noqa: S105 - the name of a variable
FRAME_MAX_BYTES = 16 * 1024 * 1024
"""Of a WebSocket client: acknowledgements are short, an answer to a tool call may hold a transcript."""
FINDABLE_S = 2
"""How often it looks whether its file is still there."""
BACKLOG = 512
"""Connections that wait to be accepted."""
KEPT_S = 60
"""An idle connection of a backend, which itself lets go of it much earlier."""
CLOSE_S = 2
"""Streams get so long to take the last frames when agentctl ends."""


class Server(uvicorn.Server):
    """uvicorn, with signals left to us and a call when it listens."""

    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_ready()


def main(argv: list[str]) -> int:
    """The exit code: 0 ended as asked, 1 could not start, 2 wrong arguments."""
    parser = argparse.ArgumentParser(
        prog="kandev agentctl", description="Own the agent processes of this machine."
    )
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--home", default=os.environ.get("KANDEV_HOME", "~/.kandev"))
    arguments = parser.parse_args(argv)
    try:
        logs.set_up(os.environ.get("KANDEV_LOG_LEVEL", "info"))
        settings = from_environment()
        # One spelling of the home: marks are compared as text, by agentctls that were told others.
        home = Home(Path(arguments.home).expanduser().resolve())
        with contextlib.closing(home), _bind(arguments.host, arguments.port) as listening:
            asyncio.run(_run(home, settings, arguments.host, listening))
    except (BadSetting, HomeFailed, ValueError, RuntimeError) as error:
        return _could_not_start(str(error))
    except OSError as error:
        return _could_not_start(f"agentctl could not start: {error}.")
    return 0


def _could_not_start(sentence: str) -> int:
    with contextlib.suppress(OSError):
        sys.stderr.write(f"kandev agentctl: {sentence}\n")
    if not sys.stdout.isatty():
        # The backend reads it here: its log of our stderr may be on the disk that takes nothing.
        sys.stdout.write(json.dumps({"event": "failed", "error": sentence}) + "\n")
        sys.stdout.flush()
    return 1


def _bind(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        # Named, for asyncio sets TCP_NODELAY only then: without it each answer waits 40 ms.
        listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
    except (OSError, OverflowError) as error:
        raise HomeFailed(f"Cannot listen on {host}:{port}: {error}. Choose another --port.") from error
    return listening


async def _run(home: Home, settings: Settings, host: str, listening: socket.socket) -> None:
    info = _info(home, host, listening)
    become_subreaper()
    tell_exhaustion(asyncio.get_running_loop())
    fences, activity = Fences(home), Activity()
    marks = {HOME_MARK: info.home, INCARNATION_MARK: info.incarnation}
    instances = Instances(home, settings, Programs(marks), fences, info.url)
    earlier = [folder.name for folder in home.journals.iterdir()]
    survivors = await end_marked(info.home, info.incarnation, settings, earlier)
    for left in survivors:
        log.warning("process %d of an earlier agentctl could not be ended: %s", left.pid, left.command)
    instances.adopt_journals(lambda execution: find_marked(execution, info.home) if survivors else [])
    guard = Guard(info.token, frozenset({host.lower()}), fences, activity)
    window = Window(settings.window_frames, settings.window_bytes)
    doors = Doors(
        instances, guard, activity, version=info.version, incarnation=info.incarnation, window=window
    )

    end = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, end.set)
    # Whoever finds it before the server accepts waits in the socket's queue.
    listening.listen(BACKLOG)
    home.publish(info)
    server = Server(server_config(doors.app()), lambda: _say_ready(info))
    async with asyncio.TaskGroup() as group:
        lonely = group.create_task(orphaned.watch(instances, activity, settings.orphan_s, end.set))
        findable = group.create_task(_stay_findable(home, info))
        serving = group.create_task(server.serve(sockets=[listening]))
        try:
            await end.wait()
        finally:
            findable.cancel()
            home.withdraw()
            await instances.close()
        lonely.cancel()
        server.should_exit = True
        await serving


def _info(home: Home, host: str, listening: socket.socket) -> Info:
    address = f"[{host}]" if ":" in host else host
    return Info(
        url=f"http://{address}:{listening.getsockname()[1]}",
        home=str(home.path),
        pid=os.getpid(),
        start_time=start_time(os.getpid()) or 0,
        token=os.environ.pop(TOKEN_VARIABLE, "") or secrets.token_urlsafe(32),
        version=__version__,
        incarnation=uuid.uuid4().hex,
    )


async def _stay_findable(home: Home, info: Info) -> None:
    """Without its file a living agentctl keeps every other one away and is found by nobody."""
    while True:
        await asyncio.sleep(FINDABLE_S)
        if not home.is_published(info):
            log.warning("%s was changed by another hand; it is written anew", home.info_path)
            with contextlib.suppress(HomeFailed):  # a disk that takes nothing now may do so later
                home.publish(info)


def _say_ready(info: Info) -> None:
    line = {"event": "ready", "url": info.url, "home": info.home, "pid": info.pid}
    with contextlib.suppress(OSError):  # Whoever started us may be dead: the next one finds the file.
        write_all(sys.stdout.fileno(), json.dumps(line).encode() + b"\n")


def server_config(app: Starlette) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        loop="asyncio",
        http="h11",
        ws="websockets-sansio",
        ws_max_size=FRAME_MAX_BYTES,
        ws_per_message_deflate=False,
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        backlog=BACKLOG,
        timeout_keep_alive=KEPT_S,
        timeout_graceful_shutdown=CLOSE_S,
    )

"""The single checks of `doctor`: each looks at one thing, bounded in time, and changes nothing.

Not here: their order and how they are shown (`doctor`).
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from kandev import config

if TYPE_CHECKING:
    import httpx

LOOK_S = 5.0
"""For a program to say its version, and for a server to answer."""
PYTHON = (3, 11)
LITTLE_MIB = 256
"""Of free space in the home: so much can journals and the database's log take in a day's work."""
GIT = (2, 25)
"""The first one whose `rev-parse` and `worktree` know all the words that we use."""


@dataclass(frozen=True)
class Finding:
    """`missing`: Kandev cannot run so. `note`: it can, and somebody should know."""

    name: str
    verdict: Literal["ok", "note", "missing"]
    sentence: str


def python(_: Path) -> Iterator[Finding]:
    """The Python that runs us."""
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info >= PYTHON:
        yield Finding("python", "ok", f"Python {version}.")
    else:
        yield Finding("python", "missing", f"Python {version} is too old; 3.11 or later is needed.")


def git(_: Path) -> Iterator[Finding]:
    """git on PATH."""
    try:
        done = subprocess.run(
            ["git", "--version"], capture_output=True, text=True, timeout=LOOK_S, check=True
        )
        words = done.stdout.split()
        version = tuple(int(part) for part in words[2].split(".")[:2])
    except FileNotFoundError:
        yield Finding("git", "missing", "git is not on PATH; install it with the system's package manager.")
    except (OSError, subprocess.SubprocessError, ValueError, IndexError) as error:
        yield Finding("git", "missing", f"git does not say its version ({error}); install it anew.")
    else:
        if version >= GIT:
            yield Finding("git", "ok", f"git {words[2]}.")
        else:
            yield Finding("git", "missing", f"git {words[2]} is too old; 2.25 or later is needed.")


def processes(_: Path) -> Iterator[Finding]:
    """/proc, where agents' processes are found and proven gone."""
    try:
        for name in ("environ", "stat"):
            Path(f"/proc/self/{name}").read_bytes()
    except OSError as error:
        sentence = f"/proc cannot be read ({error.strerror}); agents' processes could not be found. Mount it."
        yield Finding("processes", "missing", sentence)
    else:
        yield Finding("processes", "ok", "/proc can be read.")


def home(where: Path) -> Iterator[Finding]:
    """The home's place, permissions and settings."""
    if not os.path.lexists(where):
        yield _not_yet(where)
        return
    try:
        config.read({"home": str(where)})  # writes and removes an empty file: nothing else tells for sure
    except config.BadSetting as error:
        yield Finding("home", "missing", str(error))
        return
    yield Finding("home", "ok", f"{where} can be written.")
    if (left := shutil.disk_usage(where).free >> 20) < LITTLE_MIB:
        sentence = f"The disk of {where} has {left} MiB left; make room before it is full."
        yield Finding("home", "note", sentence)
    for path in (where, where / "backend.json", where / "kandev.db"):
        if path.exists() and path.stat().st_mode & 0o077:
            mode = "700" if path.is_dir() else "600"
            yield Finding("home", "note", f"Others can look into {path}; run `chmod {mode} {path}`.")


def _not_yet(where: Path) -> Finding:
    """A home that is not there. Whether it can be made is tried beside it, with a folder that goes again."""
    above = next(parent for parent in where.parents if os.path.lexists(parent))
    try:
        with tempfile.TemporaryDirectory(prefix=".kandev-", dir=above):
            pass
        config.read({"home": str(where)}, make_home=False)
    except OSError as error:
        sentence = f"{where} cannot be made in {above} ({error.strerror}); choose another with --home."
        return Finding("home", "missing", sentence)
    except config.BadSetting as error:
        return Finding("home", "missing", str(error))
    return Finding("home", "ok", f"{where} does not exist yet; the first start makes it.")


def port(where: Path) -> Iterator[Finding]:
    """Our backend, or a port that is free for it."""
    if (url := _noted(where / "backend.json")) and (answer := _answer(f"{url}/health")):
        if answer.status_code == HTTPStatus.OK:
            yield Finding("backend", "ok", f"A backend runs at {url}.")
            return
        if answer.status_code == HTTPStatus.SERVICE_UNAVAILABLE:
            yield Finding("backend", "missing", f"The backend at {url} runs, but {_ails(answer)}")
            return
    try:
        settings = config.read({"home": str(where)}, make_home=False)
    except config.BadSetting:
        return  # said by `home` already
    host, number = settings.host, settings.port
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, number))
    except OSError as error:
        sentence = f"{host}:{number} cannot be listened on ({error.strerror}); choose another with --port."
        yield Finding("port", "missing", sentence)
    else:
        yield Finding("port", "ok", f"{host}:{number} is free.")


def agentctl(where: Path) -> Iterator[Finding]:
    """The sidecar, when one runs."""
    url = _noted(where / "agentctl.json")
    if url is None:
        yield Finding("agentctl", "ok", "agentctl does not run; the backend starts it when an agent starts.")
    elif (answer := _answer(f"{url}/health")) is not None and answer.status_code == HTTPStatus.OK:
        yield Finding("agentctl", "ok", f"agentctl answers at {url}.")
    else:
        sentence = f"agentctl should run at {url} and does not answer; the backend starts another one."
        yield Finding("agentctl", "note", sentence)


def agents(_: Path) -> Iterator[Finding]:
    """Real agents on PATH."""
    from kandev.cli.agents import look_here

    here = [agent for agent in look_here() if agent["found"] and agent["name"] != "mock"]
    if here:
        names = ", ".join(f"{a['name']} {a['version'] or ''}".strip() for a in here)
        yield Finding("agents", "ok", f"On PATH: {names}.")
    else:
        yield Finding(
            "agents", "note", "No agent but the mock is on PATH; `kandev agents` says how to get one."
        )


def _noted(path: Path) -> str | None:
    """The address that a running program of ours left in its file."""
    try:
        return str(json.loads(path.read_text(encoding="utf-8"))["url"]).rstrip("/")
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _ails(answer: "httpx.Response") -> str:
    """What a backend says that cannot store anything: its database is damaged, or the disk takes nothing."""
    try:
        said = answer.json()
        return f"is {said['status']}: {said['error']}"
    except (ValueError, KeyError, TypeError):
        return "does not say why it is not well; its log does."


def _answer(url: str) -> "httpx.Response | None":
    """None when there is none."""
    import httpx

    try:
        return httpx.get(url, timeout=LOOK_S, trust_env=False)
    except (httpx.HTTPError, httpx.InvalidURL):
        return None

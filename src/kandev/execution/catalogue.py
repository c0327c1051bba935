"""Looks for the known agents on PATH; starts nothing but `--version`, each with a deadline.

Not here: which agents are known (`known_agents`), and starting one for a task (agentctl).
"""

import asyncio
import os
import re
import shutil
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress

from kandev import __version__
from kandev.execution.known_agents import AGENTS, Recipe
from kandev.ports.catalogue import KnownAgent

VERSION_S = 5.0
"""Some agents take seconds to start; one that does not say its version in time is found all the same."""
GONE_S = 1.0
VERSION_MAX = 8 * 1024
"""Bytes read of what an agent says."""
NUMBER = re.compile(r"\d+(?:\.\d+)+[\w.+-]*")
MOCK = ("-m", "kandev", "mock-agent")
INHERITED = ("PATH", "HOME", "LANG", "TERM", "KANDEV_HOME")


class PathCatalogue:
    """Implements `ports.catalogue.Catalogue`. `environment` (ours, when not given) is read at every look."""

    def __init__(
        self,
        environment: Mapping[str, str] | None = None,
        *,
        deadline: float = VERSION_S,
        recipes: Sequence[Recipe] = AGENTS,
    ) -> None:
        self._environment = os.environ if environment is None else environment
        self._deadline = deadline
        self._recipes = recipes

    async def look(self, *, versions: bool) -> tuple[KnownAgent, ...]:
        """See the port."""
        places = [self._find(recipe) for recipe in self._recipes]
        found = [path for path in places if path and versions]
        async with asyncio.TaskGroup() as group:
            asked = {path: group.create_task(self._version(path)) for path in found}
        told = {path: task.result() for path, task in asked.items()}
        agents = (
            _known(recipe, path, told.get(path or ""))
            for recipe, path in zip(self._recipes, places, strict=True)
        )
        return (mock_agent(), *agents)

    def _find(self, recipe: Recipe) -> str | None:
        path = self._environment.get("PATH", os.defpath)
        return next((found for name in recipe.programs if (found := shutil.which(name, path=path))), None)

    async def _version(self, program: str) -> str | None:
        """What `--version` says; None when it says nothing, fails, or takes too long. Gone afterwards."""
        environment = {name: self._environment[name] for name in INHERITED if name in self._environment}
        try:
            process = await asyncio.create_subprocess_exec(
                program,
                "--version",
                env=environment | {"NO_COLOR": "1"},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                process_group=0,
            )
        except OSError:
            return None
        try:
            async with asyncio.timeout(self._deadline):
                said = await _first_bytes(process.stdout)
                await process.wait()
                return version_in(said) if process.returncode == 0 else None
        except TimeoutError:
            return None
        finally:
            await _end(process)


def mock_agent() -> KnownAgent:
    """The scripted agent that comes with Kandev: always here, started with the Python that runs us."""
    return KnownAgent(
        name="mock",
        title="Mock agent",
        protocol="acp",
        command=(sys.executable, *MOCK),
        found=True,
        install="It comes with Kandev.",
        path=sys.executable,
        version=__version__,
    )


def version_in(said: bytes) -> str | None:
    """The version number in what a program said, else its first line."""
    text = said.decode("utf-8", "replace").strip()
    match = NUMBER.search(text)
    return match[0] if match else (text.splitlines()[0][:40] if text else None)


def _known(recipe: Recipe, path: str | None, version: str | None) -> KnownAgent:
    return KnownAgent(
        name=recipe.name,
        title=recipe.title,
        protocol="acp",
        command=(path or recipe.programs[0], *recipe.arguments),
        found=path is not None,
        install=recipe.install,
        login=recipe.login,
        path=path,
        version=version,
        env=recipe.env,
        withhold=recipe.withhold,
    )


async def _first_bytes(stream: asyncio.StreamReader | None) -> bytes:
    data = bytearray()
    while stream and (chunk := await stream.read(VERSION_MAX)):
        data += chunk[: VERSION_MAX - len(data)]
    return bytes(data)


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with suppress(TimeoutError):
        async with asyncio.timeout(GONE_S):
            await process.wait()

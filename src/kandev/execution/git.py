"""The git command line: one call, one deadline, one process group, nothing that asks or surprises.

Every call runs without hooks, prompts, pagers, editors or background upkeep, with an environment of its own.
Not here: what the calls mean (`worktrees`, `changes`).
"""

import asyncio
import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from kandev.core.errors import AgentFault, Invalid
from kandev.runtime.awake import Within

POLITE_S = 1.0
"""After SIGTERM git removes its lock files and half-made worktrees; then the group is killed."""
PIPES_S = 1.0
"""For the pipes of a process that is gone."""
OUTPUT_MAX = 64 * 1024 * 1024
"""Bytes of one answer; more is a repository that we cannot show."""
STDERR_MAX = 64 * 1024
CHUNK = 1 << 16

INHERITED = (
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "TMPDIR",
    "XDG_CONFIG_HOME",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_CONFIG_GLOBAL",
    "SSH_AUTH_SOCK",
    "SSL_CERT_FILE",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "KANDEV_HOME",
)
QUIET = {
    "LC_ALL": "C",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",  # looking must never take the index lock from the agent at work
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_ASKPASS": "true",
    "SSH_ASKPASS": "true",
    "GIT_EDITOR": "true",
    "GIT_PAGER": "cat",
}
OPTIONS = tuple(
    word
    for setting in (
        "core.hooksPath=/dev/null",
        "core.fsmonitor=false",
        "core.quotePath=false",
        "color.ui=false",
        "gc.auto=0",
        "maintenance.auto=false",
        "submodule.recurse=false",
        "diff.noprefix=false",
        "diff.mnemonicPrefix=false",
        "diff.renames=true",
        "advice.detachedHead=false",
    )
    for word in ("-c", setting)
)


@dataclass(frozen=True)
class Answer:
    """What git said. `cut`: there was more than asked for, and git was ended."""

    code: int
    out: bytes
    err: str
    cut: bool = False

    @property
    def text(self) -> str:
        """The output as text without its last newline."""
        return self.out.decode("utf-8", "replace").removesuffix("\n")

    @property
    def reason(self) -> str:
        """Git's own words in one line, without its `fatal:`."""
        lines = [line.strip() for line in self.err.splitlines() if line.strip()]
        chosen = next((line for line in lines if line.startswith(("fatal:", "error:"))), None)
        word = (chosen or (lines[-1] if lines else f"exit code {self.code}")).split(": ", 1)
        return word[1] if word[0] in ("fatal", "error") and len(word) == 2 else ": ".join(word)


def quiet_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """What a git call sees of ours: the way to programs and configuration, and nothing that could ask."""
    return {name: environment[name] for name in INHERITED if name in environment} | QUIET


class Git:
    """Calls of git. `deadline` in seconds holds for each call that names no other."""

    def __init__(self, environment: Mapping[str, str] | None = None, deadline: float = 60.0) -> None:
        self._environment = quiet_environment(os.environ if environment is None else environment)
        self._deadline = deadline

    async def run(
        self,
        cwd: str | Path,
        *words: str,
        feed: bytes = b"",
        limit: int = OUTPUT_MAX,
        index: str | None = None,
    ) -> Answer:
        """One call in `cwd`; any exit code is an answer. `index` is used in place of the worktree's own.

        Raises Invalid (git is not installed, no such folder), AgentFault (no end within the deadline).
        """
        environment = self._environment | ({"GIT_INDEX_FILE": index} if index else {})
        try:
            process = await asyncio.create_subprocess_exec(
                "git",
                *OPTIONS,
                *words,
                cwd=cwd,
                env=environment,
                stdin=asyncio.subprocess.PIPE if feed else asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                process_group=0,
            )
        except (FileNotFoundError, NotADirectoryError, PermissionError) as error:
            raise Invalid(_not_started(cwd, error)) from None
        except ValueError:
            raise Invalid(f"git {words[0]} cannot be asked for a name that holds a NUL character.") from None
        except OSError as error:
            raise AgentFault(f"git could not be started: {error.strerror}.") from None
        try:
            async with Within(self._deadline):
                return await _converse(process, feed, limit)
        except TimeoutError:
            raise AgentFault(
                f"git {words[0]} in {cwd} did not end within {self._deadline:g} s; it was ended."
            ) from None
        finally:
            await _end(process)

    async def ask(self, cwd: str | Path, *words: str, feed: bytes = b"", index: str | None = None) -> Answer:
        """As `run`; any exit code but 0 raises AgentFault with git's own words."""
        answer = await self.run(cwd, *words, feed=feed, index=index)
        if answer.code != 0 or answer.cut:
            why = f"it said more than {OUTPUT_MAX} bytes" if answer.cut else answer.reason
            raise AgentFault(f"git {words[0]} failed in {cwd}: {why}.")
        return answer


def _not_started(cwd: str | Path, error: OSError) -> str:
    if not Path(cwd).is_dir():
        return f"There is no folder {cwd}."
    if isinstance(error, PermissionError):
        return f"The folder {cwd} may not be entered; change its permissions."
    return "git was not found; install git and make sure that it is on PATH."


async def _converse(process: asyncio.subprocess.Process, feed: bytes, limit: int) -> Answer:
    async with asyncio.TaskGroup() as group:
        out = group.create_task(_read(process.stdout, limit))
        err = group.create_task(_read(process.stderr, STDERR_MAX, drain=True))
        if process.stdin:
            group.create_task(_feed(process.stdin, feed))
        data, cut = await out
        if cut:
            await _end(process)
    code = await process.wait()
    return Answer(0 if cut else code, data, err.result()[0].decode("utf-8", "replace"), cut)


async def _read(
    stream: asyncio.StreamReader | None, limit: int, *, drain: bool = False
) -> tuple[bytes, bool]:
    """At most `limit` bytes, and whether there were more; `drain` reads on and drops the rest."""
    data = bytearray()
    while stream and (chunk := await stream.read(CHUNK)):
        room = limit - len(data)
        data += chunk[:room]
        if len(chunk) > room and not drain:
            return bytes(data), True
    return bytes(data), False


async def _feed(stream: asyncio.StreamWriter, feed: bytes) -> None:
    with suppress(BrokenPipeError, ConnectionResetError):
        stream.write(feed)
        await stream.drain()
    stream.close()


async def _end(process: asyncio.subprocess.Process) -> None:
    """The process and its group are gone when this returns; a no-op for one that has ended by itself."""
    if process.returncode is not None:
        return
    _signal(process.pid, signal.SIGTERM)
    with suppress(TimeoutError):
        async with asyncio.timeout(POLITE_S):
            await process.wait()
    _signal(process.pid, signal.SIGKILL)
    with suppress(TimeoutError):
        async with asyncio.timeout(PIPES_S):
            await process.wait()


def _signal(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)

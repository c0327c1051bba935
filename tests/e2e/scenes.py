"""What the end-to-end tests say often: turns awaited, profiles and repositories made, processes found.

Not here: starting a Kandev and talking to it (`kandev`), running its command line (`program`).
"""

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx

from tests.e2e.kandev import DEADLINE_S, Events, Kandev

NOBODY = {f"GIT_{who}_{what}": "nobody" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


async def turns_over(events: Events, count: int = 1) -> dict[str, Any]:
    """Until so many turns of the session have ended; the last one's payload."""
    return await nth(events, "session.turn.completed", count)


async def nth(events: Events, action: str, count: int) -> dict[str, Any]:
    """The payload of the n-th notification of this name, from 1."""
    passed = 0

    def counted(_: dict[str, Any]) -> bool:
        nonlocal passed
        passed += 1
        return passed == count

    return await events.until(action, counted)


async def agent_spoke(events: Events) -> None:
    """The agent has begun to play its script."""
    await events.until("session.message.added", lambda p: p["message"]["author_type"] == "agent")


async def add(kandev: Kandev, task_id: str, session_id: str, content: str, **more: Any) -> dict[str, Any]:
    """`message.add`."""
    message = {"task_id": task_id, "session_id": session_id, "content": content, **more}
    return await kandev.call("message.add", message)


async def get(kandev: Kandev, session_id: str) -> dict[str, Any]:
    """`session.get`."""
    return await kandev.call("session.get", {"session_id": session_id})


async def said(kandev: Kandev, session_id: str, author: str = "agent", type: str = "message") -> list[str]:
    """What one author said, in order."""
    messages = await kandev.messages(session_id)
    return [m["content"] for m in messages if (m["author_type"], m["type"]) == (author, type)]


async def profile(kandev: Kandev, command: list[str] | None = None, **more: Any) -> str:
    """The id of a new profile; without a command, the mock agent's."""
    if command is None:
        command = (await kandev.call("agent.profile.list"))["profiles"][0]["command"]
    payload = {"name": "Another", "protocol": "acp", "command": command, **more}
    return str((await kandev.call("agent.profile.create", payload))["id"])


def git(folder: Path, *words: str) -> str:
    """Runs git; fails the test when git fails."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    done = subprocess.run(
        ["git", *words], cwd=folder, env=env | NOBODY, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def repository(folder: Path) -> Path:
    """A repository with one commit on `main`: README.md."""
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    (folder / "README.md").write_text("# Hello\n")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "first")
    return folder


async def repository_id(kandev: Kandev, folder: Path) -> str:
    """The id under which the Default workspace knows it."""
    payload = {"workspace_id": await kandev.workspace(), "local_path": str(folder)}
    return str((await kandev.call("repository.create", payload))["id"])


def marked(session_id: str) -> list[int]:
    """Processes that carry the mark of the session's executions."""
    found = []
    for name in os.listdir("/proc"):  # noqa: PTH208 - names only
        if name.isdigit():
            with suppress(OSError):
                words = environment_of(int(name))
                if words.get("KANDEV_EXECUTION", "").startswith(session_id):
                    found.append(int(name))
    return found


async def nothing_left(session_id: str) -> None:
    """Until no process of the session lives."""
    await until_true(lambda: not marked(session_id), f"no process of {session_id}")


async def no_instances(kandev: Kandev) -> bool:
    """Whether agentctl has nothing at all, as it says itself."""
    info = json.loads((kandev.home / "agentctl.json").read_text())
    async with httpx.AsyncClient(trust_env=False) as http:
        headers = {"Authorization": f"Bearer {info['token']}"}
        answer = await http.get(f"{info['url']}/api/v1/instances", headers=headers)
    return bool(answer.json() == {"instances": []})


async def kill_everything(kandev: Kandev, session_id: str) -> None:
    """`kill -9` of the backend, of agentctl and of the session's agent, in this order."""
    (agent,), agentctl = marked(session_id), kandev.agentctl_pid()
    await kandev.kill()
    for pid in (agentctl, agent):
        os.kill(pid, signal.SIGKILL)
    await until_true(lambda: not (alive(agentctl) or alive(agent)), "both are gone")


def environment_of(pid: int) -> dict[str, str]:
    """What a process was started with."""
    words = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace").split("\0")
    return dict(word.split("=", 1) for word in words if "=" in word)


def command_of(pid: int) -> str:
    """Its command on one line; nothing when it has ended."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
    except OSError:
        return ""
    return " ".join(words.decode(errors="replace").split())


def alive(pid: int) -> bool:
    """Whether it exists and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def until_true(condition: Callable[[], Any], what: str) -> None:
    """Where there is no event to wait for: processes and files."""

    async def look() -> Any:
        return condition()

    await until_holds(look, what)


async def until_holds(condition: Callable[[], Awaitable[Any]], what: str) -> None:
    """The same, for what is asked at a door."""
    try:
        async with asyncio.timeout(DEADLINE_S):
            while not await condition():
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise AssertionError(f"never true: {what}") from None

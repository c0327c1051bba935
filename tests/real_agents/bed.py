"""The test bed: prepares a throw-away home for an agent and gives what starts it, bare or through Kandev.

The environment is clean: PATH, HOME, LANG, TMPDIR (the agents unpack libraries into it and forget them), the
launch's own variables, and a mark by which everything the agent starts is found again. Not for talking to the
agent: `driver` does that for the bed's own tests.
"""

import json
import os
import subprocess
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .launch import LAUNCHES, Launch

MARK = "REAL_AGENTS_MARK"
REPOSITORY = Path(__file__).resolve().parents[2]
# Where install.sh puts the agents. Read when imported: while a test runs, the variable is hidden from it.
INSTALLED = Path(os.environ.get("KANDEV_REAL_AGENTS") or REPOSITORY / ".real-agents")
GEMINI_LONG_AGO = "session-2001-01-01T00-00"
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class NotInstalledError(Exception):
    """An agent is not in the cache folder. Its text is the sentence that a skipped test shows."""


@dataclass(frozen=True, slots=True)
class BedAgent:
    """An agent ready to be started. `workspace` is a git repository with one commit, the rest is Launch's."""

    name: str
    command: list[str]
    env: dict[str, str]
    home: Path
    workspace: Path
    auth: str | None
    withhold: tuple[str, ...] = ()
    mode: str | None = None
    may_leave_commands: bool = False

    @property
    def mark(self) -> str:
        """The assignment NAME=VALUE in the environment of everything that this agent starts."""
        return f"{MARK}={self.env[MARK]}"


class Bed:
    """Prepares agents below one temporary folder, all of them talking to one model server."""

    def __init__(self, folder: Path, model_url: str, installed: Path = INSTALLED) -> None:
        self._folder = folder
        self._model_url = model_url
        self._installed = installed
        self.agents: list[BedAgent] = []

    def agent(self, name: str) -> BedAgent:
        """A new home for the agent; raises NotInstalledError, and KeyError for a name not in LAUNCHES."""
        launch = LAUNCHES[name](self._installed, self._model_url)
        if not all(path.exists() for path in launch.needs):
            raise NotInstalledError(
                f"{name} is not installed in {self._installed}: run tests/real_agents/install.sh to test it."
            )
        place = self._folder / f"{name}-{len(self.agents) + 1}"
        home = _home(place / "home", launch)
        agent = BedAgent(
            name=name,
            command=list(launch.command),
            env=_environment(place, launch),
            home=home,
            workspace=_workspace(place / "workspace"),
            auth=launch.auth,
            withhold=launch.withhold,
            mode=launch.mode,
            may_leave_commands=launch.may_leave_commands,
        )
        self.agents.append(agent)
        return agent


def profile_for(bed: Bed, agent: str | BedAgent) -> dict[str, Any]:
    """The payload of `agent.profile.create` that makes Kandev start the agent as the bed would.

    Give a BedAgent to share its home (a conversation continued later needs it), a name for a fresh one.
    """
    ready = bed.agent(agent) if isinstance(agent, str) else agent
    return {
        **({"mode": ready.mode} if ready.mode else {}),
        "withhold": list(ready.withhold),
        "name": f"{ready.name} (real)",
        "protocol": "acp",
        "command": list(ready.command),
        "env": dict(ready.env),
    }


def let_a_minute_pass(agent: BedAgent) -> None:
    """Make the agent's stored sessions look older than this minute. Call it before one is loaded again.

    Gemini names a session's file by its minute: loaded within the same one, the new process writes over the
    very file it is about to read, and answers that there is no such session (-32603).
    """
    for file in agent.home.glob(".gemini/tmp/*/chats/session-*.jsonl"):
        file.rename(file.with_name(f"{GEMINI_LONG_AGO}{file.name[len(GEMINI_LONG_AGO) :]}"))


def _home(home: Path, launch: Launch) -> Path:
    home.mkdir(parents=True)
    for name, document in launch.files.items():
        file = home / name
        file.parent.mkdir(parents=True, exist_ok=True)
        text = document if isinstance(document, str) else json.dumps(document, indent=1)
        file.write_text(text, encoding="utf-8")
    return home


def _environment(place: Path, launch: Launch) -> dict[str, str]:
    temporary = place / "tmp"
    temporary.mkdir()
    folders = {"PATH": SYSTEM_PATH, "HOME": str(place / "home"), "TMPDIR": str(temporary)}
    return folders | {"LANG": "C.UTF-8", MARK: uuid.uuid4().hex} | dict(launch.env)


def _workspace(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "README.md").write_text("A place to work in.\n", encoding="utf-8")
    author = ["-c", "user.name=Test", "-c", "user.email=test@localhost"]
    env = {"PATH": SYSTEM_PATH, "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    for arguments in (["init", "-q", "-b", "main"], ["add", "."], [*author, "commit", "-q", "-m", "Start"]):
        subprocess.run(["git", *arguments], cwd=folder, env=env, check=True, timeout=30)
    return folder

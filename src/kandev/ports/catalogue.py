"""The agents that Kandev knows, and which of them are on this machine."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class KnownAgent:
    """A kind of agent. `command` starts it here (or would); `install`, `login`: sentences for people."""

    name: str
    title: str
    protocol: str
    command: tuple[str, ...]
    found: bool
    install: str
    login: str | None = None
    path: str | None = None
    version: str | None = None
    env: tuple[tuple[str, str], ...] = ()
    auth_method: str | None = None
    withhold: tuple[str, ...] = ()


class Catalogue(Protocol):
    """Looks at PATH only; starts nothing but `--version` with a deadline."""

    async def look(self, *, versions: bool) -> tuple[KnownAgent, ...]:
        """All known agents, the mock agent first, in a fixed order. `versions` asks the found ones for
        theirs (slow)."""

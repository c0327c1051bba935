"""What the mock agent's command line and environment say. Not for what a script says: that is `script`.

The package's docstring lists the variables.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_FLAGS = ("silent", "garbage", "bare", "noload", "nohttp", "tools")
USAGE = "Usage: kandev mock-agent [--protocol acp]: a scripted ACP agent on stdin and stdout."


class BadUsage(Exception):
    """The command line or a variable is wrong; the text is one sentence for a person."""


@dataclass(frozen=True)
class Settings:
    """How this process starts and where it keeps things."""

    flags: frozenset[str] = frozenset()
    exit_code: int | None = None
    slow_s: float = 0.0
    login: bool = False
    log: Path | None = None
    home: Path | None = None


def check_arguments(argv: Sequence[str]) -> None:
    """Accept nothing, or `--protocol acp`.

    Raises:
        BadUsage: for everything else.
    """
    words = [word for argument in argv for word in argument.split("=", 1)]
    if not words:
        return
    if words[0] != "--protocol" or len(words) != 2:
        raise BadUsage(f"The mock agent does not know the arguments {' '.join(argv)!r}. {USAGE}")
    if words[1] == "codex":
        raise BadUsage("The mock agent speaks ACP only: leave --protocol codex out.")
    if words[1] != "acp":
        raise BadUsage(f"The mock agent does not know the protocol {words[1]!r}: use --protocol acp.")


def from_environment(environ: Mapping[str, str] = os.environ) -> Settings:
    """Read the `MOCK_AGENT_…` variables.

    Raises:
        BadUsage: when one of them cannot be understood.
    """
    flags: set[str] = set()
    exit_code: int | None = None
    slow_s = 0.0
    for part in environ.get("MOCK_AGENT_START", "").split(","):
        match part.split():
            case []:
                pass
            case ["exit", code] if code.isdecimal():
                exit_code = int(code)
            case ["slow", seconds] if seconds.replace(".", "", 1).isdecimal():
                slow_s = float(seconds)
            case [flag] if flag in _FLAGS:
                flags.add(flag)
            case _:
                known = ", ".join((*_FLAGS, "exit N", "slow SECONDS"))
                raise BadUsage(f"MOCK_AGENT_START does not know {part.strip()!r}: use one of {known}.")
    log, home = environ.get("MOCK_AGENT_LOG"), environ.get("HOME")
    return Settings(
        flags=frozenset(flags),
        exit_code=exit_code,
        slow_s=slow_s,
        login=environ.get("MOCK_AGENT_LOGIN", "") not in ("", "0"),
        log=Path(log) if log else None,
        home=Path(home) if home else None,
    )

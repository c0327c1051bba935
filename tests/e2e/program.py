"""`kandev …` as a person runs it: a process of its own, with what it printed and its exit code."""

import asyncio
import json
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

from tests.e2e.kandev import DEADLINE_S, Kandev


@dataclass(frozen=True)
class Ran:
    """How it ended."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """What `--json` printed. Fails the test when it failed."""
        assert self.code == 0, self
        return json.loads(self.out)

    @property
    def error(self) -> dict[str, Any]:
        """The error object on stderr."""
        assert self.code == 1, self
        return dict(json.loads(self.err))


async def run(kandev: Kandev, *words: str, stdin: str = "", **environment: str) -> Ran:
    """Until it ends, at most the deadline."""

    def ran() -> Ran:
        done = subprocess.run(
            [sys.executable, "-m", "kandev", *words],
            env={**kandev.env(), **environment},
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=DEADLINE_S,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    return await asyncio.to_thread(ran)

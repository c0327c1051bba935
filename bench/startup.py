"""How long the programs take to be there."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Sequence

from bench.figures import Row, ms
from bench.ground import Ground
from bench.processes import clean_environment
from bench.program import Kandev

PYTHON = "python -c pass"


async def measure(ground: Ground) -> Sequence[Row]:
    """`kandev --version`, and the ready line of a first and of a later start."""
    pass_s, version_s, first_s, second_s = [list[float]() for _ in range(4)]
    for number in range(ground.sizes.starts):
        pass_s.append(_run(ground, "-c", "pass"))
        version_s.append(_run(ground, "-m", "kandev", "--version"))
        kandev = Kandev(ground.folder / f"home-{number}")
        try:
            first_s.append(await kandev.start())
            await kandev.signal(signal.SIGTERM)
            second_s.append(await kandev.start())
        finally:
            await kandev.end()
    floor = ms(pass_s)
    ready = ground.budget(1500, "p95")
    return [
        Row("kandev --version", "ms", ms(version_s), floor, PYTHON, ground.budget(200, "p95")),
        Row("ready line, new home", "ms", ms(first_s), floor, PYTHON, ready),
        Row("ready line, later start", "ms", ms(second_s), floor, PYTHON, ready),
    ]


def _run(ground: Ground, *arguments: str) -> float:
    began = time.monotonic()
    subprocess.run(
        [sys.executable, *arguments],
        env=clean_environment(ground.folder),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        check=True,
        timeout=60,
    )
    return time.monotonic() - began

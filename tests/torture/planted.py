"""Bugs that are put into the running programs on purpose, to see that torture finds each of them.

The bugs of the simulation are planted in the real backend as they are; those here are agentctl's. The code of
the product stays as it is: `plants/sitecustomize.py` patches the programs as they start.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from kandev.agentctl import dispatching, ending, journal, looking
from kandev.wire import agentctl as wire
from tests.simulation.planted import BUGS as SIMULATED

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(__file__).resolve().parent / "plants"
KEPT = contextlib.ExitStack()
"""Open until the program ends."""


def environment(name: str | None) -> dict[str, str]:
    """With it the programs start with this bug, or ready for `points` without one."""
    return {"TORTURE_PLANT": name or "", "PYTHONPATH": f"{FOLDER}:{ROOT}:{ROOT / 'src'}"}


def plant(name: str) -> None:
    """Into this process, for as long as it lives."""
    if name in AGENTCTL:
        AGENTCTL[name]()
    else:
        KEPT.enter_context(SIMULATED[name]())


def _only_the_first_process() -> None:
    """A tree is ended by its root alone, and nobody looks what is left."""

    def look(self: looking.Family) -> list[wire.Process]:
        root = self.root and looking.read_stat(self.root[0])
        return [looking.describe(root)] if root and root.alive else []

    looking.Family.look = look  # type: ignore[method-assign]

    async def end_marked(*_: Any) -> list[wire.Process]:
        return []

    ending.end_marked = end_marked  # type: ignore[assignment]


def _frames_are_lost() -> None:
    """Each tenth frame of output does not reach the journal."""
    really = journal.Journal.write

    def write(self: journal.Journal, make: Callable[[int], wire.Frame]) -> int:
        if isinstance(make(0), wire.MessageChunk) and self.last_seq % 10 == 7:
            return self.last_seq
        return really(self, make)

    journal.Journal.write = write  # type: ignore[method-assign]


def _frames_are_swapped() -> None:
    """Two pieces that come together are read in the wrong order."""
    really = journal.Journal.read_from

    def read_from(self: journal.Journal, seq: int) -> list[tuple[int, bytes]]:
        frames = list(really(self, seq))
        if len(frames) > 1 and all(b'"message_chunk"' in line for _, line in frames[:2]):
            (one, first), (two, second) = frames[:2]
            old, new = f'"seq":{one},'.encode(), f'"seq":{two},'.encode()
            frames[:2] = [(one, second.replace(new, old)), (two, first.replace(old, new))]
        return frames

    journal.Journal.read_from = read_from  # type: ignore[method-assign]


def _dispatches_are_forgotten() -> None:
    """A dispatch that was taken is not known when somebody asks: it counts as refused, and is sent again."""

    def state(self: dispatching.Dispatching, dispatch_id: str, generation: int) -> wire.DispatchState:
        return wire.DispatchState(accepted=False)

    dispatching.Dispatching.state = state  # type: ignore[method-assign]


def _nothing_is_forgotten() -> None:
    """A deleted instance leaves its journal."""
    journal.Journal.drop = journal.Journal.close  # type: ignore[method-assign]


def _terminated_is_gone() -> None:
    """Whoever got SIGTERM counts as gone."""

    async def step(family: looking.Family, signum: signal.Signals, wait_s: float) -> Iterable[wire.Process]:
        for process in family.look():
            ending.send_signal(process, signal.SIGTERM)
        return []

    ending._step = step  # type: ignore[assignment]


AGENTCTL: dict[str, Callable[[], None]] = {
    "only the first process": _only_the_first_process,
    "frames are lost": _frames_are_lost,
    "frames are swapped": _frames_are_swapped,
    "dispatches are forgotten": _dispatches_are_forgotten,
    "nothing is forgotten": _nothing_is_forgotten,
    "terminated is gone": _terminated_is_gone,
}
NAMES = (*AGENTCTL, *SIMULATED)

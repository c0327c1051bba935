"""Points name methods that are there, and each is reached once, where and when it says."""

from __future__ import annotations

import importlib
import os
import random
import signal
from pathlib import Path

import pytest

from tests.torture import points


class Ledger:
    def __init__(self) -> None:
        self.written: list[str] = []

    def write(self, line: str) -> None:
        self.written.append(line)

    async def sync(self) -> str:
        return "synced"


@pytest.mark.parametrize("name", [*points.BACKEND, *points.AGENTCTL])
def test_a_point_names_a_method_of_its_program(name: str) -> None:
    module, _, path = name.partition(":")
    owner, method = path.split(".")
    assert callable(getattr(getattr(importlib.import_module(module), owner), method))
    assert (name in points.AGENTCTL) == module.startswith("kandev.agentctl.")


def test_plans_reach_every_point_before_and_after_and_with_both_ends() -> None:
    rng = random.Random(1)
    drawn = [points.draw(rng).split("/") for _ in range(3000)]
    assert {name for name, *_ in drawn} == {*points.BACKEND, *points.AGENTCTL}
    assert {(when, what) for _, when, _, what in drawn} == {
        (when, what) for when in ("before", "after") for what in ("die", "stall")
    }


async def test_a_point_is_reached_once_at_its_call_by_whoever_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger()
    seen: list[list[str]] = []
    monkeypatch.setitem(points.ENDS, "stall", lambda: seen.append(list(ledger.written)))
    monkeypatch.setattr(Ledger, "write", Ledger.write)  # put back behind the test
    monkeypatch.setattr(Ledger, "sync", Ledger.sync)
    before, after = (f"{__name__}:Ledger.write/{when}/2/stall" for when in ("before", "after"))
    for point in (before, after, f"{__name__}:Ledger.sync/after/1/stall"):
        points._arm(point, tmp_path)
    for line in ("one", "two", "three"):
        ledger.write(line)
    assert await ledger.sync() == "synced"
    assert seen == [["one"], ["one", "two"], ["one", "two", "three"]]
    points._arm(before, tmp_path)  # as another process would
    for line in ("four", "five", "six"):
        ledger.write(line)
    assert len(seen) == 3
    assert points.disarm((before, after), tmp_path) == 2


def test_a_point_that_kills_ends_the_process_at_once(tmp_path: Path) -> None:
    point = f"{__name__}:Ledger.write/before/1/die"
    child = os.fork()
    if child == 0:
        points._arm(point, tmp_path)
        Ledger().write("one")
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert points.disarm((point,), tmp_path) == 1
    other = f"{__name__}:Ledger.write/before/9/die"
    assert points.disarm((other,), tmp_path) == 0
    assert points.disarm((other,), tmp_path) == 1, "its marker is there now"

"""A run measures everything, says it in one table and in JSON, and leaves nothing, whenever it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from bench.__main__ import BENCHMARKS, INTERRUPTED
from bench.processes import of_run

ROOT = Path(__file__).resolve().parent.parent.parent
DEADLINE_S = 120.0
EVENTLESS_S = 0.02


def _start(folder: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "bench", "--quick", "--folder", str(folder), *words],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _run(folder: Path, *words: str) -> tuple[int, str, str]:
    process = _start(folder, *words)
    out, err = process.communicate(timeout=DEADLINE_S)
    return process.returncode, out, err


def _numbers(figure: Any) -> list[float]:
    return list(figure.values()) if isinstance(figure, dict) else [figure]


def test_a_quick_run_measures_everything_and_leaves_nothing(tmp_path: Path) -> None:
    code, out, err = _run(tmp_path, "--json", str(tmp_path / "out.json"))
    assert (code, list(tmp_path.iterdir())) == (0, [tmp_path / "out.json"]), err
    document = json.loads((tmp_path / "out.json").read_text())
    assert document["machine"]["quick"] is True
    assert [result["benchmark"] for result in document["results"]] == list(BENCHMARKS)
    lines = [json.loads(line) for line in err.splitlines() if line.startswith("{")]
    assert lines == document["results"]
    assert out.count("Floor is") == 1
    for result in document["results"]:
        assert result["benchmark"] in out
        assert any(row["floor"] is not None for row in result["rows"])
        for row in result["rows"]:
            assert row["what"][:20] in out
            assert all(number >= 0 for number in _numbers(row["figure"]))
            assert row["holds"] is None  # its sizes are not those that a budget is about
    lost = {row["what"]: row["figure"] for result in lines for row in result["rows"] if "lost" in row["what"]}
    assert lost
    assert set(lost.values()) == {0}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_interrupted_ends_what_it_has_started(tmp_path: Path, number: signal.Signals) -> None:
    process = _start(tmp_path, "--only", "memory")
    try:
        deadline = time.monotonic() + DEADLINE_S
        while len(of_run(tmp_path)) < 2:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(EVENTLESS_S)
        process.send_signal(number)
        out, err = process.communicate(timeout=DEADLINE_S)
    finally:
        process.kill()
        process.communicate()
    assert (process.returncode, out) == (INTERRUPTED, ""), err
    assert (of_run(tmp_path), list(tmp_path.iterdir())) == ([], [])


def test_a_name_that_is_no_benchmark_is_refused_with_those_that_are(tmp_path: Path) -> None:
    code, out, err = _run(tmp_path, "--only", "speed")
    assert (code, out) == (2, "")
    assert all(name in err for name in BENCHMARKS)

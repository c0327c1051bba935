"""What a process was started with is read once, and not before it has run its program."""

import subprocess
import sys
from collections.abc import Iterator

import pytest

from kandev.agentctl import origins
from kandev.agentctl.looking import read_stat
from kandev.agentctl.origins import Key, Origin, Origins, read_marks, read_origin

MARK = {"KANDEV_EXECUTION": "e1", "KANDEV_HOME": "/home", "OTHER": "KANDEV_NOT=this"}
MARKS = {b"KANDEV_EXECUTION": b"e1", b"KANDEV_HOME": b"/home"}


@pytest.fixture
def marked() -> Iterator[Key]:
    """A process that runs its program already."""
    script = "print(flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", script], env=MARK, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        stat = read_stat(process.pid)
        assert stat is not None
        yield stat.key
        process.kill()


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The pids that were read."""
    seen: list[int] = []

    def read(pid: int) -> Origin:
        seen.append(pid)
        return read_origin(pid)

    monkeypatch.setattr(origins, "read_origin", read)
    return seen


def test_only_what_is_named_like_our_marks_is_kept(marked: Key) -> None:
    assert read_marks(marked[0]) == MARKS


def test_an_old_process_is_read_once(marked: Key, reads: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(origins, "SETTLED_S", 0.0)
    known = Origins()
    assert known.of(marked).marks == known.of(marked).marks == MARKS
    assert reads == [marked[0]]


def test_a_young_process_is_read_again_for_it_may_be_about_to_run_its_program(
    marked: Key, reads: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(origins, "SETTLED_S", 3600.0)
    known = Origins()
    assert known.of(marked).marks == known.of(marked).marks == MARKS
    assert reads == [marked[0], marked[0]]


def test_another_process_of_the_same_number_is_another_process(
    marked: Key, reads: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(origins, "SETTLED_S", 0.0)
    known = Origins()
    pid, start_time = marked
    known.of((pid, start_time - 1))
    known.of(marked)
    assert reads == [pid, pid]


def test_what_is_gone_is_forgotten(marked: Key, reads: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(origins, "SETTLED_S", 0.0)
    known = Origins()
    gone = [(pid, 1) for pid in range(2**22 + 1, 2**22 + 5)]
    for key in (*gone, marked):
        known.of(key)
    known.forget([marked])
    reads.clear()
    for key in (*gone, marked):
        known.of(key)
    assert reads == [pid for pid, _ in gone]


@pytest.mark.parametrize("pid", [0, 2**22 + 1])
def test_a_process_that_is_not_there_says_nothing(pid: int) -> None:
    assert read_origin(pid) == Origin({}, None)


def test_of_an_environment_our_marks_are_read_and_nothing_else(marked: Key) -> None:
    assert read_marks(marked[0]) == MARKS

"""The journal: numbering, replay, trimming, room, and what a death leaves of it."""

import asyncio
import errno
import os
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kandev.agentctl.journal import Journal, Meta
from kandev.agentctl.segments import SegmentWriter, write_whole
from kandev.wire import agentctl as wire

META = Meta(journal_id="j1", execution_id="e1", session_id="s1", task_id="t1", boot_id="b1")
SMALL = 4000
ROOM = 1 << 30


def write(journal: Journal, text: str) -> int:
    return journal.write(
        lambda seq: wire.Notice(seq=seq, journal_id="j1", execution_id="e1", at="now", text=text)
    )


def texts(journal: Journal, seq: int) -> list[tuple[int, str]]:
    """Everything from `seq` on, as a reader gets it: piece by piece."""
    read: list[tuple[int, str]] = []
    while lines := journal.read_from(seq):
        for number, line in lines:
            frame = msgspec.json.decode(line, type=wire.Notice)
            assert frame.seq == number
            read.append((number, frame.text))
        seq = read[-1][0] + 1
    return read


def create(folder: Path, max_bytes: int = SMALL) -> Journal:
    return Journal.create(folder / "e1", META, max_bytes)


class Disk:
    """Takes so many bytes more, the last of them in the middle of a write as real ones do."""

    def __init__(self) -> None:
        self.room = ROOM

    def write(self, descriptor: int, content: bytes) -> int:
        if self.room == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        taken = os.write(descriptor, content[: self.room])
        self.room -= taken
        return taken

    async def step(self, journal: Journal, step: str, number: int) -> None:
        if step == "write":
            write(journal, "x" * number)
        elif step == "ack":
            journal.acknowledge(number)
        elif step == "disk":
            self.room = number
        else:
            await asyncio.sleep(0)  # tries that were put off


@pytest.mark.proves("CTL-stream", "CTL-fence-journal-id")
async def test_frames_are_numbered_from_one_and_read_from_any_position(tmp_path: Path) -> None:
    journal = create(tmp_path)
    for number in range(1, 31):
        assert write(journal, f"{number} " + "x" * 100) == number
    for after in (0, 1, 17, 29, 30):
        assert [seq for seq, _ in texts(journal, after + 1)] == list(range(after + 1, 31))
    journal.close()


async def test_a_reader_that_is_far_behind_reads_from_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kandev.agentctl.journal.TAIL_BYTES", 500)
    journal = create(tmp_path)
    for number in range(1, 31):
        write(journal, str(number))
    assert [text for _, text in texts(journal, 1)] == [str(number) for number in range(1, 31)]
    journal.close()


async def test_an_acknowledgement_trims_whole_segments_and_keeps_the_rest(tmp_path: Path) -> None:
    journal = create(tmp_path)
    for number in range(1, 31):
        write(journal, f"{number} " + "x" * 100)
    before = len(list((tmp_path / "e1").glob("*.jsonl")))
    journal.acknowledge(20)
    assert len(list((tmp_path / "e1").glob("*.jsonl"))) < before
    assert [seq for seq, _ in texts(journal, 21)] == list(range(21, 31))
    journal.acknowledge(5)
    assert journal.acknowledged_seq == 20
    journal.acknowledge(1_000)
    assert journal.acknowledged_seq == 30
    assert journal.unacknowledged_bytes == 0
    journal.close()


async def test_a_full_journal_waits_for_an_acknowledgement(tmp_path: Path) -> None:
    journal = create(tmp_path)
    while journal.unacknowledged_bytes < SMALL:
        write(journal, "x" * 100)
    waiting = asyncio.create_task(journal.room())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not waiting.done()
    journal.acknowledge(journal.last_seq)
    await asyncio.wait_for(waiting, 1)
    journal.close()


@pytest.mark.parametrize("free", [Journal.lift, Journal.drop])
async def test_an_ending_lets_a_waiting_writer_go(tmp_path: Path, free: object) -> None:
    journal = create(tmp_path)
    while journal.unacknowledged_bytes < SMALL:
        write(journal, "x" * 100)
    waiting = asyncio.create_task(journal.room())
    await asyncio.sleep(0)
    free(journal)  # type: ignore[operator]
    await asyncio.wait_for(waiting, 1)
    journal.close()


async def test_a_journal_goes_on_after_the_death_of_its_writer(tmp_path: Path) -> None:
    journal = create(tmp_path)
    for number in range(1, 31):
        write(journal, f"{number} " + "x" * 100)
    journal.close()
    newest = max((tmp_path / "e1").glob("*.jsonl"))
    with newest.open("ab") as file:
        file.write(b'{"type":"notice","seq":31,"torn')
    again = Journal.reopen(tmp_path / "e1", SMALL)
    assert again.meta == META
    assert again.last_seq == 30
    assert write(again, "new") == 31
    assert texts(again, 30)[-1] == (31, "new")
    again.close()
    third = Journal.reopen(tmp_path / "e1", SMALL)
    assert [seq for seq, _ in texts(third, 1)] == list(range(1, 32))


async def test_a_dropped_journal_leaves_nothing(tmp_path: Path) -> None:
    journal = create(tmp_path)
    write(journal, "x")
    waiting = asyncio.create_task(journal.changed())
    await asyncio.sleep(0)
    journal.drop()
    await asyncio.wait_for(waiting, 1)
    assert list(tmp_path.iterdir()) == []
    write(journal, "late")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.proves("SURVIVE-full-disk")
@given(
    steps=st.lists(
        st.one_of(
            st.integers(1, 400).map(lambda size: ("write", size)),
            st.integers(0, 60).map(lambda n: ("ack", n)),
            st.integers(0, 300).map(lambda room: ("disk", room)),
            st.just(("disk", ROOM)),
            st.just(("later", 0)),
        ),
        max_size=60,
    ),
    tail=st.integers(1, 2000),
)
def test_nothing_unacknowledged_is_ever_missing_or_out_of_order_whatever_the_disk_takes(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]], tail: int
) -> None:
    folder = tmp_path_factory.mktemp("journal")
    disk = Disk()

    async def run() -> None:
        journal = create(folder)
        for step, number in steps:
            await disk.step(journal, step, number)
            kept = [seq for seq, _ in texts(journal, journal.acknowledged_seq + 1)]
            assert kept == list(range(journal.acknowledged_seq + 1, journal.last_seq + 1))
        disk.room = ROOM
        journal.close()
        again = Journal.reopen(folder / "e1", SMALL)
        found = [seq for seq, _ in texts(again, journal.acknowledged_seq + 1)]
        assert found == list(range(journal.acknowledged_seq + 1, journal.last_seq + 1))
        again.drop()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kandev.agentctl.journal.TAIL_BYTES", tail)
        patch.setattr("kandev.agentctl.journal.AGAIN_S", 0)
        patch.setattr("kandev.agentctl.segments.os", SimpleNamespace(**{**vars(os), "write": disk.write}))
        asyncio.run(run())


def test_a_segment_writer_takes_lines_whole(tmp_path: Path) -> None:
    writer = SegmentWriter(tmp_path, 5)
    writer.append(5, b"five\n")
    writer.append(6, b"six\n")
    writer.close()
    assert (writer.segment.first, writer.segment.last, writer.segment.size) == (5, 6, 9)
    assert writer.segment.path.read_bytes() == b"five\nsix\n"


def test_what_a_killed_writer_left_beside_a_file_is_written_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(path: Path, target: Path) -> Path:
        raise KeyboardInterrupt

    write_whole(tmp_path / "epoch", b"1")
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(Path, "replace", killed)
        write_whole(tmp_path / "epoch", b"2")
    assert (tmp_path / "epoch").read_bytes() == b"1"
    monkeypatch.setattr(os, "getpid", lambda: 2)  # the next writer is another process
    write_whole(tmp_path / "epoch", b"3")
    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [("epoch", b"3")]

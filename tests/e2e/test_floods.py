"""An agent that says more than the disk takes: it waits at its own pipe, and nobody's memory grows for it."""

import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.e2e.kandev import Kandev
from tests.e2e.scenes import agent_spoke, turns_over, until_true
from tests.e2e.test_long_messages import talkative
from tests.fakes.talkative_agent import whole

COUNT, SIZE = 160, 512 << 10
JOURNAL = 8 << 20
"""Bytes: what agentctl keeps for a backend that does not store them."""
BOUND = 64 << 20
"""Bytes that a program may grow by: less than the flood, of which it holds only a part."""


@pytest.fixture
async def narrow(tmp_path: Path) -> AsyncIterator[Kandev]:
    """A Kandev whose journals are short."""
    async with Kandev(tmp_path / "home", {"KANDEV_JOURNAL_MAX_BYTES": str(JOURNAL)}) as running:
        yield running


@contextmanager
def stalled(kandev: Kandev) -> Iterator[None]:
    """The database takes nothing: another program holds its lock."""
    with closing(sqlite3.connect(kandev.home / "kandev.db", isolation_level=None, timeout=20)) as database:
        database.execute("BEGIN IMMEDIATE")
        yield
        database.execute("ROLLBACK")


def highest(pid: int) -> int:
    """The most resident bytes that it ever had."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM"))


async def everything(kandev: Kandev, session_id: str) -> str:
    """What the agent said, over all pages."""
    texts: list[str] = []
    after: str | None = None
    while page := (await kandev.call("message.list", {"session_id": session_id, "after": after}))["messages"]:
        texts += [m["content"] for m in page if m["author_type"] == "agent"]
        after = page[-1]["id"]
    return "".join(texts)


@pytest.mark.proves("SURVIVE-flood")
async def test_a_flood_waits_at_the_agents_pipe_while_the_database_takes_nothing(
    narrow: Kandev, tmp_path: Path
) -> None:
    agent = await talkative(narrow)
    _, session_id = await narrow.session(f"flood {COUNT} {SIZE} {tmp_path}", agent_profile_id=agent)
    assert narrow.process is not None
    programs = {"backend": narrow.process.pid}
    said = tmp_path / "said"
    async with narrow.watching(session_id) as events:
        await agent_spoke(events)
        programs["agentctl"] = narrow.agentctl_pid()
        before = {name: highest(pid) for name, pid in programs.items()}
        said.unlink(missing_ok=True)
        with stalled(narrow):
            (tmp_path / "go").touch()
            await until_true(lambda: said.exists() and int(said.read_text()) > 1, "the agent is stuck")
            assert int(said.read_text()) * SIZE < 2 * JOURNAL, "no more is taken than the journal holds"
        await turns_over(events)
    grown = {name: highest(pid) - before[name] for name, pid in programs.items()}
    assert await everything(narrow, session_id) == whole(COUNT, SIZE)
    assert max(grown.values()) < BOUND, grown

"""Looks at the processes of this machine (/proc) and says which of them belong to an execution.

Belonging is decided by the mark in a process's environment, by its brand, by descent from a process that
belongs, by a shared session, and by the execution's control group. Children change their environment, their
group, their parent and their session, so none of these is enough alone. Not here: ending them
(`kandev.agentctl.ending`).

Format: proc(5), "/proc/pid/stat".
"""

import os
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from kandev.agentctl.branding import brand_of, is_of_home
from kandev.agentctl.origins import (
    EXECUTION_MARK,
    HOME_MARK,
    INCARNATION_MARK,
    Environment,
    Key,
    Origin,
    Origins,
    read_file,
)
from kandev.wire import agentctl as wire

COMMAND_SHOWN = 200
"""Characters of a command line that are shown."""
ASKED_AGAIN = 5
"""How often a process is asked for its children until it says the same twice."""


@dataclass(frozen=True, slots=True)
class Stat:
    """A process as /proc/<pid>/stat has it; `start_time` in clock ticks since boot."""

    pid: int
    start_time: int
    parent: int
    session: int
    state: str
    threads: int
    name: str

    @property
    def alive(self) -> bool:
        """A zombie is not, unless only its first thread has ended."""
        return self.state not in ("Z", "X") or self.threads > 1

    @property
    def key(self) -> Key:
        """What tells it from a later process of the same number."""
        return self.pid, self.start_time


def read_stat(pid: int) -> Stat | None:
    """None when there is no such process. Raises OSError when nobody can tell (no descriptors left)."""
    try:
        data = read_file(f"/proc/{pid}/stat")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None
    # The name may hold spaces and parentheses: the last one closes it.
    head, _, tail = data.rpartition(b")")
    fields = tail.split()
    return Stat(
        pid=pid,
        start_time=int(fields[19]),
        parent=int(fields[1]),
        session=int(fields[3]),
        state=fields[0].decode(),
        threads=int(fields[17]),
        name=head.partition(b"(")[2].decode(errors="replace"),
    )


def snapshot() -> dict[int, Stat]:
    """Every process that is alive now."""
    return alive(int(name) for name in os.listdir("/proc") if name.isdigit())  # noqa: PTH208 - fast


def alive(pids: Iterable[int]) -> dict[int, Stat]:
    """Those of them that are."""
    return {stat.pid: stat for stat in map(read_stat, pids) if stat is not None and stat.alive}


def children_of(pid: int) -> set[int]:
    """Its children, of all its threads; none when it is gone. The system may leave some out while others
    end (proc(5)), so it is asked until it says the same again."""
    found = _children_once(pid)
    for _ in range(ASKED_AGAIN):
        before, found = found, _children_once(pid)
        if found == before:
            break
    return found


def _children_once(pid: int) -> set[int]:
    found: set[int] = set()
    with suppress(FileNotFoundError, ProcessLookupError, PermissionError):
        for task in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - fast
            with suppress(FileNotFoundError, ProcessLookupError):
                found.update(map(int, read_file(f"/proc/{pid}/task/{task}/children").split()))
    return found


@cache
def _tells_children() -> bool:
    """Whether the system has such lists (CONFIG_PROC_CHILDREN)."""
    return Path(f"/proc/self/task/{threading.get_native_id()}/children").exists()


def describe(stat: Stat) -> wire.Process:
    """With its command on one line, or its name in brackets when it has none."""
    try:
        words = Path(f"/proc/{stat.pid}/cmdline").read_bytes().replace(b"\0", b" ")
    except OSError:
        words = b""
    command = " ".join(words.decode(errors="replace").split())[:COMMAND_SHOWN] or f"[{stat.name}]"
    return wire.Process(pid=stat.pid, start_time=stat.start_time, command=command)


def lineage(pid: int) -> set[int]:
    """A process and its ancestors."""
    found: set[int] = set()
    while pid > 0 and pid not in found:
        found.add(pid)
        stat = read_stat(pid)
        pid = stat.parent if stat is not None else 0
    return found


@dataclass(frozen=True)
class Mark:
    """What a process of ours was started with: `carried` judges its environment, `branded` its brand."""

    carried: Callable[[Environment], bool]
    branded: Callable[[int], bool]

    def on(self, origin: Origin) -> bool:
        """Whether a process bears it. The environment decides where it says anything of us; the brand is for
        the others."""
        if self.carried(origin.marks):
            return True
        return origin.brand is not None and self.branded(origin.brand)


ORIGINS = Origins()
"""Shared by all families: each of them looks at the same processes."""


@dataclass
class Family:
    """The processes of one execution (or of one terminal in it).

    `mark` is what they were started with. `root` is the first process, `(pid, start time)`. `grouped` names
    the pids in the execution's control group. `others` names children of this program that are known to
    belong elsewhere. What was seen once (`seen`, by the same pair) stays a member as long as it lives. Safe
    to call from several threads.
    """

    mark: Mark
    root: Key | None = None
    grouped: Callable[[], Iterable[int]] = tuple
    others: Callable[[], Iterable[int]] = tuple
    seen: set[Key] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def look(self) -> list[wire.Process]:
        """Every live member, by pid. This program and its ancestors are never members."""
        with self._lock:
            table = snapshot()
            ORIGINS.forget([stat.key for stat in table.values()])
            for pid in lineage(os.getpid()):
                table.pop(pid, None)
            members = self._members(table)
            self.seen = {stat.key for stat in members}
        return [describe(stat) for stat in sorted(members, key=lambda stat: stat.pid)]

    def look_near(self) -> list[wire.Process]:
        """As `look`, but among our own descendants alone, at the cost of those of this execution. That is
        enough where orphans come back to us (`kandev.agentctl.child.become_subreaper`), and no proof."""
        if not _tells_children():
            return self.look()
        with self._lock:
            table: dict[int, Stat] = {}
            members: list[Stat] = []
            tried = lineage(os.getpid())
            near = {*children_of(os.getpid()), *self.grouped(), *(pid for pid, _ in self.seen)}
            while near := near - tried:
                tried |= near
                table |= alive(near)
                members = self._members(table)
                near = {child for stat in members for child in children_of(stat.pid)}
            self.seen = {stat.key for stat in members}
        return [describe(stat) for stat in sorted(members, key=lambda stat: stat.pid)]

    def _members(self, table: dict[int, Stat]) -> list[Stat]:
        me = os.getpid()
        own_session = os.getsid(0)
        grouped, others = set(self.grouped()), set(self.others())
        todo = [stat for stat in table.values() if stat.pid in grouped or self._begins(stat, me, others)]
        members: dict[int, Stat] = {}
        while todo:
            stat = todo.pop()
            if stat.pid in members:
                continue
            members[stat.pid] = stat
            todo += [other for other in table.values() if _follows(other, stat, own_session)]
        return list(members.values())

    def _begins(self, stat: Stat, me: int, others: set[int]) -> bool:
        """By itself, not by another member."""
        if stat.key in self.seen or stat.key == self.root:
            return True
        if self.root is not None and stat.parent == me and stat.session == self.root[0] != stat.pid:
            # Its parent died and it came back to us, still in the session that the first process led.
            return stat.pid not in others
        if self.root is not None and stat.start_time < self.root[1]:
            return False  # older than the first process: nothing of it needs to be read
        return self.mark.on(ORIGINS.of(stat.key))


def _follows(stat: Stat, member: Stat, own_session: int) -> bool:
    """Child of a member, or in its session; our own session proves nothing."""
    return stat.parent == member.pid or (stat.session == member.session != own_session and stat.session != 0)


def mark_of(execution_id: str | None, home: str) -> Mark:
    """The mark of an execution; None: of any execution of this home."""
    wanted_home = os.fsencode(home)
    wanted = None if execution_id is None else execution_id.encode()
    brand = None if execution_id is None else brand_of(home, execution_id)

    def carried(environment: Environment) -> bool:
        mark = environment.get(EXECUTION_MARK.encode())
        if mark is None or environment.get(HOME_MARK.encode()) != wanted_home:
            return False
        return wanted is None or mark == wanted

    return Mark(carried, lambda found: is_of_home(found, home) if brand is None else found == brand)


def mark_of_older(home: str, incarnation: str) -> Mark:
    """The mark of any execution of this home under another incarnation. A brand names none: it counts as
    another one's, so this is for the time before an agentctl starts its first agent."""
    of_home = mark_of(None, home)

    def carried(environment: Environment) -> bool:
        if not of_home.carried(environment):
            return False
        return environment.get(INCARNATION_MARK.encode()) != incarnation.encode()

    return Mark(carried, of_home.branded)


def find_marked(execution_id: str | None, home: str) -> list[wire.Process]:
    """All live processes that bear our mark, without their unmarked kin."""
    mark = mark_of(execution_id, home)
    mine = lineage(os.getpid())
    stats = [stat for stat in snapshot().values() if stat.pid not in mine]
    found = [stat for stat in stats if mark.on(ORIGINS.of(stat.key))]
    return [describe(stat) for stat in sorted(found, key=lambda stat: stat.pid)]

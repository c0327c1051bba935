"""Ends a family of processes and looks whether they are gone: SIGTERM, a wait, SIGKILL, a wait, a look.

A pid is signalled only through a pidfd whose process has the start time that was seen: a pid that was given
to another process in between is left alone. Not here: who belongs (`kandev.agentctl.looking`), and asking an
agent politely (`kandev.agentctl.process`).
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Sequence
from typing import TypeAlias

from kandev.agentctl.child import reap_orphans
from kandev.agentctl.grouping import folder_of, own_group, pids_in, remove_empty
from kandev.agentctl.looking import Family, mark_of, mark_of_older, read_stat
from kandev.agentctl.settings import Settings
from kandev.wire import agentctl as wire

LOOK_AGAIN_S = 0.1
"""While some are still ending, others may have started: they get the signal too."""

Key: TypeAlias = tuple[int, int]


def send_signal(process: wire.Process, signum: signal.Signals) -> None:
    """To this very process. Nothing when it is gone, or is not ours to signal."""
    try:
        pidfd = os.pidfd_open(process.pid)
    except OSError:
        return
    try:
        stat = read_stat(process.pid)
        if stat is not None and stat.start_time == process.start_time:
            signal.pidfd_send_signal(pidfd, signum)
    except (ProcessLookupError, PermissionError):
        pass
    finally:
        os.close(pidfd)


async def end_family(
    family: Family, settings: Settings, *, kill_group: Callable[[], None] | None = None
) -> list[wire.Process]:
    """SIGTERM to all, wait `teardown_term_s`; SIGKILL to all, wait `teardown_kill_s`. Returns the survivors.
    `kill_group` kills what is in the control group at one stroke, so that nothing can outrun us by
    forking."""
    left = await _step(family, signal.SIGTERM, settings.teardown_term_s)
    if left:
        if kill_group is not None:
            kill_group()
        left = await _step(family, signal.SIGKILL, settings.teardown_kill_s)
    return left


async def _step(family: Family, signum: signal.Signals, wait_s: float) -> list[wire.Process]:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + wait_s
    signalled: set[Key] = set()
    while members := await look(family):
        for process in members:
            if (process.pid, process.start_time) not in signalled:
                send_signal(process, signum)
                signalled.add((process.pid, process.start_time))
        left = deadline - loop.time()
        if left <= 0:
            break
        await wait_gone(members, min(left, LOOK_AGAIN_S))
    return members


async def look(family: Family) -> list[wire.Process]:
    """`Family.look` off the event loop: reading /proc takes milliseconds for each thousand processes."""
    reap_orphans()
    return await asyncio.to_thread(family.look)


async def wait_gone(processes: Sequence[wire.Process], timeout_s: float) -> None:
    """Until all of them have ended, or the time is over."""
    loop = asyncio.get_running_loop()
    pidfds: dict[int, asyncio.Future[None]] = {}
    for process in processes:
        with contextlib.suppress(OSError):
            pidfds[os.pidfd_open(process.pid)] = loop.create_future()
    for pidfd, gone in pidfds.items():
        loop.add_reader(pidfd, _settle, gone)
    try:
        if pidfds:
            await asyncio.wait(pidfds.values(), timeout=timeout_s)
        else:  # gone meanwhile, or no descriptors left: never a busy loop
            await asyncio.sleep(min(timeout_s, LOOK_AGAIN_S / 10))
    finally:
        for pidfd in pidfds:
            loop.remove_reader(pidfd)
            os.close(pidfd)


def _settle(gone: asyncio.Future[None]) -> None:
    if not gone.done():
        gone.set_result(None)


async def end_left(
    execution: str, home: str, left: Sequence[wire.Process], settings: Settings
) -> list[wire.Process]:
    """Once more, what could not be ended of an execution whose processes nobody owns any more. Returns the
    survivors."""
    seen = {(process.pid, process.start_time) for process in left}
    return await end_family(Family(mark_of(execution, home), seen=seen), settings)


async def end_marked(
    home: str, incarnation: str, settings: Settings, executions: Sequence[str] = ()
) -> list[wire.Process]:
    """End whatever carries the mark of this home under an older incarnation, or is in the control group of
    one of its `executions`, with its kin. Returns the survivors."""
    parent = own_group()
    folders = [] if parent is None else [folder_of(execution, home, parent) for execution in executions]

    def grouped() -> list[int]:
        return [pid for folder in folders for pid in pids_in(folder)]

    survivors = await end_family(Family(mark_of_older(home, incarnation), grouped=grouped), settings)
    remove_empty(parent)
    return survivors

"""What the operator is told of the machine while the backend runs: that the database cannot be written, and
that it can again; and that another backend has taken over.

A write that failed is known to the store; whether the disk takes writes again is tried here, so that nobody
has to ask for something first. Not here: what each request hears (`gateway.errors`), damage (`storage`).
"""

import asyncio
from collections.abc import Callable
from typing import Final

import structlog

from kandev.core.errors import KandevError
from kandev.ports.clock import Clock
from kandev.ports.store import Store

LOOK_S: Final = 5.0
"""Between looks, and between tries while nothing can be written."""
TRIED: Final = "tried"
"""The note that is written to see whether something can be."""

log = structlog.get_logger(__name__)


async def watch(
    store: Store, clock: Clock, epoch: int, lost: Callable[[], None], look_s: float = LOOK_S
) -> None:
    """Runs until it is cancelled. Writes nothing while all is well. `lost` is called when the database has
    another owner than `epoch`."""
    loop = asyncio.get_running_loop()
    since: float | None = None
    while True:
        await asyncio.sleep(look_s)
        if await _owner(store) not in (None, epoch):
            lost()
        if store.damage is not None:
            continue  # damage: nothing is written any more
        if store.hindrance is not None:
            if since is None:
                since = loop.time()
                log.error("the database cannot be written", error=store.hindrance)
            await _try(store, clock.now())
        if store.hindrance is None and since is not None:
            log.warning("the database is written again", after_s=round(loop.time() - since))
            since = None


async def _owner(store: Store) -> int | None:
    """None: nobody can tell."""
    try:
        return await store.read(lambda tx: tx.epoch())
    except KandevError:
        return None


async def _try(store: Store, now: str) -> None:
    try:
        await store.write(lambda tx: tx.set_note(TRIED, now))
    except KandevError as fault:
        log.debug("still not written", error=fault.message)

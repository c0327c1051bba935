"""What agentctl has and no session needs is deleted; what it has seen gone is no longer told as left.

Not here: when this is done (`bootstrap`), and how agentctl ends what survived (`agentctl.instances`).
"""

from collections.abc import Collection
from dataclasses import replace

import structlog

from kandev.core.session import Launch
from kandev.ports.execution import Agents, Running
from kandev.ports.store import Store, Tx

log = structlog.get_logger(__name__)


async def end_orphans(store: Store, agents: Agents, deadline: float) -> None:
    """Instances that no session names, or whose end is committed, are deleted: whoever wanted it may have
    died. `deadline` (seconds) is for each call. Raises AgentFault, StoreFault."""
    # Before agentctl is asked: an execution that begins and ends behind its answer is not judged by it.
    named = await store.read(lambda tx: tx.executions.with_survivors())
    for running in await agents.known(deadline):
        if not await store.read(lambda tx, running=running: _needed(tx, running)):  # type: ignore[misc]
            log.info("ending an execution that no session needs", execution_id=running.execution)
            await agents.forget(running.execution, deadline)
    if named and (gone := await agents.unknown([execution.id for execution in named], deadline)):
        await store.write(lambda tx: _clear(tx, gone))


def _needed(tx: Tx, running: Running) -> bool:
    record = tx.sessions.get(running.session_id)
    if record is None or not record.value.executions or record.value.execution != running.execution:
        return False
    return record.value.launch is not Launch.ABSENT


def _clear(tx: Tx, gone: Collection[str]) -> None:
    """The chat's line about them stays: it says what was true then."""
    for execution in gone:
        if (found := tx.executions.get(execution)) is not None:
            tx.executions.update(replace(found, survivors=()))

"""The ports that actors and their effects work with."""

from dataclasses import dataclass

from kandev.ports.clock import Clock, Ids
from kandev.ports.execution import Agents
from kandev.ports.store import Store
from kandev.ports.worktrees import Worktrees
from kandev.runtime.deadlines import Deadlines


@dataclass(frozen=True)
class Outer:
    """Built once, in `bootstrap`."""

    store: Store
    agents: Agents
    worktrees: Worktrees
    clock: Clock
    ids: Ids
    deadlines: Deadlines

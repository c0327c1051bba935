"""What every use case needs of the house. Built once, in `bootstrap`."""

from dataclasses import dataclass

from kandev.ports.catalogue import Catalogue
from kandev.ports.clock import Clock, Ids
from kandev.ports.store import Store
from kandev.ports.worktrees import Worktrees
from kandev.runtime.deadlines import Deadlines
from kandev.runtime.registry import Sessions


@dataclass(frozen=True)
class Context:
    """Order of checks in every use case: shape, existence, authority, state; then effects."""

    store: Store
    sessions: Sessions
    worktrees: Worktrees
    catalogue: Catalogue
    clock: Clock
    ids: Ids
    deadlines: Deadlines

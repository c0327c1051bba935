"""What agentctl's files in the home tell without it: epochs and executions that it has seen.

Not here: agentctl's own use of them (`agentctl.fences`), and what follows when the database knows less
(`runtime.restored`).
"""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from kandev.runtime.restored import Seen

NEWEST: Final = 50
"""Of the executions that agentctl deleted: what an older database knows nothing of are the last ones."""


def read_seen(home: Path) -> Seen:
    """Nothing of what cannot be read: agentctl itself demands that it can."""
    folder = home / "agentctl"
    epoch, deleted, kept = "0", list[str](), list[str]()
    with suppress(OSError, UnicodeDecodeError):
        epoch = (folder / "epoch").read_text(encoding="ascii").strip()
    with suppress(OSError, UnicodeDecodeError):
        deleted = (folder / "tombstones").read_text(encoding="utf-8").split()
    with suppress(OSError):
        kept = [path.name for path in (folder / "journals").iterdir()]
    return Seen(
        epoch=int(epoch) if epoch.isdecimal() else 0,
        executions=_highest([*deleted, *kept]),
        newest=_highest([*deleted[-NEWEST:], *kept]),
    )


def has_journals(home: Path) -> bool:
    """Whether executions were not yet ended and forgotten when agentctl was there last."""
    with suppress(OSError):
        return any((home / "agentctl" / "journals").iterdir())
    return False


def _highest(executions: Iterable[str]) -> dict[str, int]:
    """From `<session id>.<number>`."""
    found: dict[str, int] = {}
    for execution in executions:
        session_id, _, number = execution.rpartition(".")
        if number.isdecimal():
            found[session_id] = max(found.get(session_id, 0), int(number))
    return found

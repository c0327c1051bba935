"""What agentctl's files in the home tell without it: epochs and executions that it has seen.

Not here: agentctl's own use of them (`agentctl.fences`), and what follows when the database knows less
(`runtime.restored`).
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from kandev.core.errors import KandevError
from kandev.runtime.restored import Seen

NEWEST: Final = 50
"""Of the executions that agentctl deleted: what an older database knows nothing of are the last ones."""


def read_seen(home: Path) -> Seen:
    """What does not exist tells nothing. Raises KandevError for what cannot be read: taken for nothing, it
    could hide that the database went back."""
    folder = home / "agentctl"
    epoch, deleted, kept = "0", list[str](), list[str]()
    with _readable(folder / "epoch"):
        epoch = (folder / "epoch").read_text(encoding="ascii").strip()
        int(epoch)
    with _readable(folder / "tombstones"):
        deleted = (folder / "tombstones").read_text(encoding="utf-8").split()
    with _readable(folder / "journals"):
        kept = [path.name for path in (folder / "journals").iterdir()]
    return Seen(
        epoch=int(epoch),
        executions=_highest([*deleted, *kept]),
        newest=_highest([*deleted[-NEWEST:], *kept]),
    )


def has_journals(home: Path) -> bool:
    """Whether executions were not yet ended and forgotten when agentctl was there last. Raises as `read_seen`
    does."""
    found = False
    journals = home / "agentctl" / "journals"
    with _readable(journals):
        found = any(journals.iterdir())
    return found


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    with suppress(FileNotFoundError):
        try:
            yield
        except FileNotFoundError:
            raise
        except OSError as error:
            why = f"({error.strerror or error}): make it yours and readable"
            raise KandevError(f"{path} cannot be read {why}, then start again.") from error
        except ValueError as error:
            raise KandevError(
                f"{path} is damaged: put it back from a copy, or move it away when no agentctl runs, "
                "then start again."
            ) from error


def _highest(executions: Iterable[str]) -> dict[str, int]:
    """From `<session id>.<number>`."""
    found: dict[str, int] = {}
    for execution in executions:
        session_id, _, number = execution.rpartition(".")
        if number.isdecimal():
            found[session_id] = max(found.get(session_id, 0), int(number))
    return found

"""Fences that outlive what they guard: the owner's epoch, and tombstones of executions.

A paused old backend that wakes up has a lower epoch and can do nothing; a create that was overtaken by
its DELETE finds a tombstone. Both are in force at once, and answered when the disk has them: on a disk that
takes nothing the request is unsettled, and asked again. Not here: the generation mark (`dispatching`).
"""

from contextlib import suppress

from kandev.agentctl.home import KEPT_TOMBSTONES, Home
from kandev.agentctl.refusals import Refused, Unsettled
from kandev.wire.agentctl import EPOCH_HEADER


class Fences:
    """Read from the home once; written before it answers."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._epoch = home.load_epoch()
        self._tombstones = dict.fromkeys(home.load_tombstones())
        self._unsaved: list[str] = []

    def check_epoch(self, header: str | None, *, acting: bool) -> None:
        """An acting request without an epoch counts as epoch 0: it is refused as soon as a backend has
        taken one. Raises Refused, Unsettled."""
        if header is None:
            if not acting:
                return
            header = "0"
        if not header.isascii() or not header.isdigit():
            raise Refused(400, "invalid", f"The header {EPOCH_HEADER} holds a number.")
        epoch = int(header)
        if epoch < self._epoch:
            raise Refused(
                412,
                "old_epoch",
                f"This agentctl is owned by epoch {self._epoch}; a request of epoch {epoch} is refused.",
            )
        if epoch > self._epoch:
            try:
                self._home.save_epoch(epoch)
            except OSError as error:
                raise _not_saved(error) from error
            self._epoch = epoch

    def bury(self, execution_id: str) -> None:
        """Raises Unsettled: it is fenced, but not yet for the next agentctl."""
        if execution_id not in self._tombstones:
            self._tombstones[execution_id] = None
            self._unsaved.append(execution_id)
        try:
            while self._unsaved:
                self._home.add_tombstone(self._unsaved[0])
                del self._unsaved[0]
        except OSError as error:
            raise _not_saved(error) from error
        if len(self._tombstones) > 2 * KEPT_TOMBSTONES:
            self._let_old_ones_go()

    def _let_old_ones_go(self) -> None:
        with suppress(OSError):  # a full disk: the next one tries again
            self._tombstones = dict.fromkeys(self._home.keep_tombstones(list(self._tombstones)))

    def check_buried(self, execution_id: str) -> None:
        """Raises Refused."""
        if execution_id in self._tombstones:
            raise Refused(
                409, "tombstone", f"The execution {execution_id!r} was deleted; it does not start again."
            )


def _not_saved(error: OSError) -> Unsettled:
    return Unsettled(f"agentctl cannot write into Kandev's home: {error.strerror or error}.")

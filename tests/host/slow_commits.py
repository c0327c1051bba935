"""`kandev` with a database whose commits stand still as long as a file lies there.

The file's name is in SLOW_COMMITS; its text says whether they stand still `before` they happen or `after`.
Not a test: run in place of `kandev` by those beside it.
"""

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from sqlalchemy import Connection

from kandev.__main__ import main
from kandev.ports.clock import Clock
from kandev.storage.sql import group, threads

FILE = Path(os.environ["SLOW_COMMITS"])


def standing_still(moment: str) -> bool:
    try:
        return FILE.read_text() == moment
    except FileNotFoundError:
        return False


def slowly(
    connection: Connection, clock: Clock, functions: Sequence[group.Function], owner: int | None = None
) -> group.Committed:
    while standing_still("before"):
        time.sleep(0.01)
    done = group.write_together(connection, clock, functions, owner)
    while standing_still("after"):
        time.sleep(0.01)
    return done


threads.write_together = slowly  # type: ignore[attr-defined]

if __name__ == "__main__":
    sys.exit(main())

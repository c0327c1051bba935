"""Logs that cannot be written, and what stands in none."""

import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy.exc import IntegrityError

from kandev.storage.sql.engine import connect, connect_memory

LOGGING = """
import structlog
from kandev.logs import log_to_stderr
log_to_stderr("info")
structlog.get_logger().error("nobody can read this")
print("goes on", flush=True)
"""


@pytest.mark.proves("SURVIVE-full-disk")
def test_a_log_that_cannot_be_written_stops_nothing() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", LOGGING],
            stdout=subprocess.PIPE,
            stderr=full,
            text=True,
            check=False,
            timeout=30,
        )
    assert done.stdout == "goes on\n"


@pytest.mark.parametrize("on_disk", [False, True])
def test_a_failure_of_the_database_does_not_repeat_what_was_to_be_stored(
    on_disk: bool, tmp_path: Path
) -> None:
    connection = connect(tmp_path / "x.db", busy_s=1, writing=True) if on_disk else connect_memory()
    with connection:
        connection.exec_driver_sql("CREATE TABLE t (a TEXT UNIQUE)")
        connection.exec_driver_sql("INSERT INTO t VALUES (?)", ("a secret",))
        with pytest.raises(IntegrityError) as failed:
            connection.exec_driver_sql("INSERT INTO t VALUES (?)", ("a secret",))
    assert "a secret" not in str(failed.value)

"""What the command line says when something cannot be done: one sentence on stderr and an exit code.

Not here: wrong usage, which click reports with exit code 2.
"""

import json
import sys
from collections.abc import Mapping
from types import TracebackType
from typing import IO, Any

import click


class Failed(click.ClickException):
    """Exit code 1 with one sentence."""

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(f"kandev: {self.message}", file=file, err=True)


class Unreachable(Failed):
    """No backend answers."""


class Refused(Failed):
    """The backend answered with an error object; with `as_json` it is shown whole."""

    def __init__(self, error: Mapping[str, Any], *, as_json: bool = False) -> None:
        super().__init__(str(error.get("message") or error.get("code") or "The backend refused it."))
        self.error = dict(error)
        self.code = str(error.get("code", ""))
        self.as_json = as_json

    def show(self, file: IO[Any] | None = None) -> None:
        if self.as_json:
            click.echo(json.dumps(self.error, ensure_ascii=False), file=file, err=True)
        else:
            super().show(file)


def without_traceback(
    kind: type[BaseException], error: BaseException, _trace: TracebackType | None = None
) -> None:
    """A `sys.excepthook`: a bug of ours is one sentence to its user; `KANDEV_TRACEBACK=1` shows the rest."""
    sys.stderr.write(
        f"kandev: this should not have happened ({kind.__name__}: {error}); "
        "run it again with KANDEV_TRACEBACK=1 and report what it shows.\n"
    )

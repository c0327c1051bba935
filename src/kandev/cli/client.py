"""What every command that talks to the backend shares: its options, and the client that they make.

Not here: finding and calling the backend (`backend`), naming things (`naming`).
"""

import functools
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Concatenate, ParamSpec, TypeVar

import click

from kandev.cli.backend import Backend, Finder
from kandev.cli.output import Output

P = ParamSpec("P")
R = TypeVar("R")
TIMEOUT_S = 30.0
"""The slowest honest answer, a cancel of a deaf agent, takes about half of it."""
OPTIONS = (
    click.option("--url", metavar="URL", help="Address of the backend (else KANDEV_URL, else the home's)."),
    click.option("--home", metavar="DIR", help="Home of the backend (else KANDEV_HOME, else ~/.kandev)."),
    click.option(
        "--timeout",
        type=click.FloatRange(min=0, min_open=True),
        default=TIMEOUT_S,
        show_default=True,
        metavar="SECONDS",
        help="Deadline of each call.",
    ),
    click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON."),
)


@dataclass(frozen=True)
class Client:
    """One command's way to the backend and to its user."""

    backend: Backend
    out: Output

    def call(self, action: str, payload: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """See `Backend.call`; members that are None are left out."""
        known = {name: value for name, value in (payload or {}).items() if value is not None}
        return self.backend.call(action, known)

    def listed(
        self, action: str, noun: str, payload: Mapping[str, Any] | None = None
    ) -> list[dict[str, Any]]:
        """All pages of a list."""
        found: list[dict[str, Any]] = []
        cursor: object = None
        while True:
            page = self.call(action, {**(payload or {}), "cursor": cursor})
            found += page.get(noun, [])
            cursor = page.get("next_cursor")
            if not cursor:
                return found


def client_command(function: Callable[Concatenate[Client, P], R]) -> Callable[P, R]:
    """Adds the options that all client commands share, and hands the command its client first."""

    @functools.wraps(function)
    def command(*words: P.args, **options: P.kwargs) -> R:
        given: dict[str, Any] = dict(options)
        url, home, timeout, as_json = (given.pop(name) for name in ("url", "home", "timeout", "as_json"))
        backend = Backend(Finder(url, home, os.environ), timeout, as_json=as_json)
        click.get_current_context().call_on_close(backend.close)
        return function(Client(backend, Output(as_json)), *words, **given)

    for option in reversed(OPTIONS):
        option(command)
    return command


def text_or_stdin(text: str | None) -> str | None:
    """`-` stands for what comes on stdin, without its last newline."""
    if text != "-":
        return text
    return sys.stdin.read().removesuffix("\n")

"""`doctor`: what this machine has and lacks for running Kandev. Changes nothing.

Not here: what is wrong with one session (`session explain`).
"""

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

import click

from kandev import config
from kandev.cli.examination import Finding, agentctl, agents, git, home, port, processes, python
from kandev.cli.failures import Failed
from kandev.cli.output import Output, is_terminal, paint

MARKS = {"ok": ("ok", "green"), "note": ("note", "yellow"), "missing": ("MISSING", "red")}


@click.command()
@click.option(
    "--home", "home_flag", metavar="DIR", help="Home to look at (else KANDEV_HOME, else ~/.kandev)."
)
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
def doctor(home_flag: str | None, as_json: bool) -> None:
    """Say what is missing. Exit code 1 when something that is needed is not there."""
    try:
        where = config.home_of(home_flag, os.environ)
    except config.BadSetting as error:
        raise Failed(str(error)) from None
    found = list(examine(where))
    out = Output(as_json)
    needed = [finding for finding in found if finding.verdict == "missing"]
    if not out.data({"ok": not needed, "checks": [asdict(finding) for finding in found]}):
        for finding in found:
            word, colour = MARKS[finding.verdict]
            mark = paint(word.ljust(7), colour, bold=True) if is_terminal() else word.ljust(7)
            out.say(f"{mark}  {finding.name.ljust(10)}  {finding.sentence}")
    sys.exit(1 if needed else 0)


def examine(where: Path) -> Iterator[Finding]:
    """All findings about this machine and a home, in a fixed order."""
    checks: tuple[Callable[[Path], Iterator[Finding]], ...] = (
        python,
        git,
        processes,
        home,
        port,
        agentctl,
        agents,
    )
    for check in checks:
        yield from check(where)

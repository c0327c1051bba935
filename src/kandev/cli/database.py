"""`db`: copies of the database, the way back to one, and a look for damage. No backend is asked.

Not here: how each is done (`storage`), and what a restored database means to sessions (`runtime.restored`).
"""

import asyncio
import functools
import os
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Concatenate, ParamSpec

import click

from kandev import config
from kandev.cli.failures import Failed
from kandev.cli.output import Output
from kandev.home import AGENTCTL, BACKEND, InUse, locked

P = ParamSpec("P")
OPTIONS = (
    click.option("--home", metavar="DIR", help="Home of the database (else KANDEV_HOME, else ~/.kandev)."),
    click.option("--database-url", metavar="URL", help="Database (else the settings', else the home's)."),
    click.option("--json", "as_json", is_flag=True, help="Print the result as JSON."),
)


@dataclass(frozen=True)
class Place:
    """Which database is meant. Nothing is read, and no home made, before it is asked for."""

    flags: dict[str, object]
    out: Output

    def settings(self, *, make_home: bool = False) -> config.Settings:
        """Raises Failed."""
        try:
            return config.read(self.flags, make_home=make_home)
        except config.BadSetting as error:
            raise Failed(str(error)) from None

    def database(self) -> Path:
        """The file, which is there and begins like one. Raises Failed, DatabaseRefused, OSError."""
        from kandev.storage.examination import refuse_other_files
        from kandev.storage.opening import database_path
        from kandev.storage.restoring import plan_of

        path = database_path(str(self.settings().database_file))
        if plan_of(path).exists():
            raise Failed(
                f"A restore of {path} was cut short: start the backend, or restore again, and it is finished."
            )
        if not path.exists():
            raise Failed(f"There is no database at {path}: name its home with --home.")
        refuse_other_files(path)
        return path


def database_command(function: Callable[Concatenate[Place, P], None]) -> Callable[P, None]:
    """Adds the options that the commands share; what the store refuses is one sentence."""

    @functools.wraps(function)
    def command(*words: P.args, **options: P.kwargs) -> None:
        from kandev.core.errors import StoreFault

        given: dict[str, Any] = dict(options)
        home, url, as_json = (given.pop(name) for name in ("home", "database_url", "as_json"))
        try:
            function(Place({"home": home, "database_url": url}, Output(as_json)), *words, **given)
        except StoreFault as fault:
            raise Failed(fault.message) from None
        except OSError as error:
            raise Failed(f"{error.filename}: {error.strerror}.") from None

    for option in reversed(OPTIONS):
        option(command)
    return command


@click.group()
def db() -> None:
    """Copy the database, go back to a copy, look for damage."""


@db.command()
@click.argument("file", required=False)
@database_command
def backup(place: Place, file: str | None) -> None:
    """Copy the database to FILE (else into backups/ beside it), while the backend runs or not, and print the
    copy's path."""
    from kandev.storage.copies import CopyFailed, copy, free_name, ready_folder
    from kandev.storage.examination import revision_of

    database, busy_s = place.database(), place.settings().deadlines.commit_s
    revision = revision_of(database, busy_s=busy_s)
    try:
        target = Path(file).absolute() if file else free_name(ready_folder(database), database.stem)
        copy(database, target, busy_s=busy_s)
    except CopyFailed as fault:
        raise Failed(f"{database} was not copied: {fault.message}.") from None
    told = {"path": str(target), "revision": revision, "bytes": target.stat().st_size}
    if not place.out.data(told):
        place.out.say(str(target))


@db.command()
@click.argument("file", required=False)
@database_command
def check(place: Place, file: str | None) -> None:
    """Look through the database, or the copy FILE, for damage. Changes nothing; exit code 1 when it is not
    sound."""
    from kandev.storage.examination import check, refuse_other_files, way_back
    from kandev.storage.files import holder, is_alone

    path = place.database() if file is None else Path(file).absolute()
    if file is not None:
        refuse_other_files(path)
    apart = file is not None and is_alone(path) and holder(path) is None
    found = check(path, busy_s=place.settings().deadlines.commit_s, immutable=apart)
    told = {"path": str(path), "ok": not found.problems, "revision": found.revision}
    if place.out.data({**told, "problems": found.problems}):
        sys.exit(1 if found.problems else 0)
    for problem in found.problems:
        place.out.say(f"{path}: {problem}.")
    if found.problems:
        advice = "take another copy" if file else way_back(path)
        raise Failed(f"{path} is not sound: {advice}.")
    place.out.say(f"{path} is sound: version {found.revision}, all of it was looked through.")


@db.command()
@click.argument("file")
@click.option("--stop-agents", is_flag=True, help="End agents that are still at work first.")
@database_command
def restore(place: Place, file: str, stop_agents: bool) -> None:
    """Put a copy of FILE in the database's place. The database of before is kept under another name."""
    from kandev.storage.opening import database_path
    from kandev.storage.restoring import refuse_unfit, restore

    copy = Path(file).absolute()
    refuse_unfit(copy, busy_s=place.settings().deadlines.commit_s)
    settings = place.settings(make_home=True)
    database = database_path(str(settings.database_file))
    with ExitStack() as held:
        _lock_out_backends(held, settings.home)
        _lock_out_agents(held, settings, stop_agents=stop_agents)
        restored = restore(copy, database, busy_s=settings.deadlines.commit_s)
    kept = str(restored.kept) if restored.kept else None
    told = {"path": str(database), "from": str(copy), "revision": restored.revision, "kept": kept}
    if place.out.data(told):
        return
    place.out.say(f"{database} is a copy of {copy} now (version {restored.revision}).")
    if kept:
        place.out.say(f"The database of before is {kept}.")
    place.out.say("Start the backend: sessions that were at work are idle, and what waited waits for you.")


def _lock_out_backends(held: ExitStack, home: Path) -> None:
    try:
        held.enter_context(locked(home, BACKEND))
    except InUse:
        raise Failed(f"A backend uses the home {home}: end it first (Ctrl-C or SIGTERM).") from None


def _lock_out_agents(held: ExitStack, settings: config.Settings, *, stop_agents: bool) -> None:
    """What agents say from now on would be for a database that is no more."""
    from kandev.execution.sidecar import Sidecar

    sidecar, deadline = Sidecar(settings.home, os.environ), settings.deadlines.teardown_s
    if stop_agents and sidecar.find() is not None:
        asyncio.run(sidecar.end(deadline))
    try:
        held.enter_context(locked(settings.home, AGENTCTL))
    except InUse:
        found = sidecar.find()
        which = f"agentctl (process {found.pid})" if found else "agentctl"
        if stop_agents:
            raise Failed(f"{which} did not end within {deadline:g} s: end it by hand.") from None
        raise Failed(
            f"Agents are still at work under {which}: end them with --stop-agents, or let a backend finish."
        ) from None

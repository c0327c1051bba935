"""`tail`: watch a session live, to its end or until it waits for input.

Not here: the connection (`stream`), what is shown of it (`watch`, `transcript`).
"""

import asyncio
import json
import sys
from contextlib import aclosing

import click

from kandev.cli import naming
from kandev.cli.client import Client, client_command
from kandev.cli.failures import Failed
from kandev.cli.output import has_colour
from kandev.cli.stream import RECONNECT_S, Event, Stream
from kandev.cli.transcript import Transcript
from kandev.cli.watch import Watch

LINES = 20
INTERRUPTED = 130
"""Exit code of a program that was left by Ctrl-C."""


@click.command()
@click.argument("target", metavar="SESSION|TASK")
@click.option("--until-idle", "--once", "until_idle", is_flag=True, help="End when it waits for input.")
@click.option(
    "-n", "--lines", type=click.IntRange(min=0), default=LINES, show_default=True, help="Earlier messages."
)
@click.option(
    "--reconnect",
    type=click.FloatRange(min=0),
    default=RECONNECT_S,
    show_default=True,
    metavar="SECONDS",
    help="How long a lost backend is looked for.",
)
@client_command
def tail(client: Client, target: str, until_idle: bool, lines: int, reconnect: float) -> None:
    """Watch a session live. Ctrl-C leaves; the session goes on. Exit code 1 when it failed."""
    session_id = str(naming.session_or_task(client, target)["id"])
    stream = Stream(client.backend.finder, session_id, client.backend.timeout, reconnect=reconnect)
    watch = Watch(Transcript(session_id, _silent if client.out.as_json else _write), lines)
    try:
        asyncio.run(_follow(stream, watch, until_idle=until_idle, as_json=client.out.as_json))
    except KeyboardInterrupt:
        watch.transcript.close()
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        # Whoever read our output has enough; Python must not complain at exit.
        sys.stderr.close()
        sys.exit(0)
    except Failed:
        watch.transcript.close()
        raise
    if watch.state == "FAILED":
        sys.exit(1)


async def _follow(stream: Stream, watch: Watch, *, until_idle: bool, as_json: bool) -> None:
    async with aclosing(stream.events()) as events:
        async for event in events:
            if as_json and event.action not in ("lost", "back", "resumed"):
                click.echo(json.dumps({"action": event.action, "payload": event.payload}, ensure_ascii=False))
            _take(watch, event)
            if watch.over or (until_idle and watch.idle and event.action != "lost"):
                watch.transcript.close()
                return


def _take(watch: Watch, event: Event) -> None:
    match event.action:
        case "snapshot":
            watch.snapshot(event.payload)
        case "lost":
            watch.transcript.close()
            click.echo("kandev: the connection is lost; looking for the backend…", err=True)
        case "back":
            click.echo("kandev: connected again.", err=True)
        case _:
            watch.notification(event.action, event.payload)


def _write(text: str) -> None:
    click.echo(text, nl=False, color=has_colour())


def _silent(_: str) -> None:
    """Programs read the events themselves."""

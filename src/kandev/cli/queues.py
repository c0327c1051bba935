"""`queue`: the messages that wait for a session's agent; seen, added, changed, put in order, let go.

Not here: sending a message (`messages`), which asks nobody to wait that need not.
"""

import sys
from collections.abc import Sequence
from typing import Any

import click

from kandev.cli import naming
from kandev.cli.client import Client, client_command, text_or_stdin
from kandev.cli.failures import Failed, Refused
from kandev.cli.messages import FATES
from kandev.cli.output import COLOURS, age_of, first_words, line_of, paint, shown_id

TARGET = click.argument("target", metavar="SESSION|TASK")
ENTRY = click.argument("entry", metavar="ENTRY")
WAITING = (naming.has_waiting, naming.works)
HELD = (naming.is_held, *WAITING)
ADDED = {
    "sent": "The agent has it: nothing waited before it.",
    "queued": "It waits in the queue.",
    "started": "The session starts with it.",
}
Thing = naming.Thing


@click.group()
def queue() -> None:
    """Look at the messages that wait, change them, let them go."""


@queue.command("list")
@TARGET
@client_command
def list_entries(client: Client, target: str) -> None:
    """Show the messages that wait for a turn, in their order."""
    id = _session(client, target, WAITING)
    answer = client.call("message.queue.get", {"session_id": id})
    if client.out.data(answer):
        return
    rows = (
        (
            each.get("position"),
            shown_id(each["id"]),
            _sender(each),
            age_of(each.get("queued_at")),
            first_words(each.get("content", "")),
        )
        for each in answer.get("entries", [])
    )
    client.out.table(("#", "entry", "from", "age", "message"), rows, "Nothing waits.")
    say_why_held(client, id, answer)


def say_why_held(client: Client, session_id: str, queue: Thing) -> None:
    """Why the queue does not run by itself, and what lets it go; nothing when it does."""
    from kandev.core.views import SWITCHED_OFF

    if queue.get("auto_run") is not False:
        return
    reason = line_of(queue.get("parked_reason") or "it does not run by itself")
    held = "paused" if reason == SWITCHED_OFF else f"parked: {reason}"
    way = f"`kandev queue resume {session_id}` lets it run."
    client.out.say(paint(f"The queue is {held}. {way}", COLOURS["BLOCKED"]))


def _sender(entry: Thing) -> str:
    """Who put it there, for a person."""
    by = str(entry.get("queued_by", ""))
    if task := entry.get("sender_task_id"):
        return f"{by}, task {shown_id(task)}"
    return f"{by}, {entry['coalescing_key']}" if entry.get("coalescing_key") else by


@queue.command()
@TARGET
@click.argument("text")
@click.option("--key", metavar="KEY", help="Idempotency key: the same key is one message.")
@click.option(
    "--replace",
    metavar="KEY",
    help="For automations: take the place of the earlier entry under this KEY that still waits.",
)
@client_command
def add(client: Client, target: str, text: str, key: str | None, replace: str | None) -> None:
    """Put TEXT (- reads it from stdin) behind all that waits; it overtakes and releases nothing."""
    payload = {
        "session_id": _session(client, target, ()),
        "content": text_or_stdin(text),
        "idempotency_key": key,
        "coalescing_key": replace,
    }
    answer = client.call("message.queue.add", payload)
    if client.out.data(answer):
        return
    status = str(answer.get("status", ""))
    client.out.say(f"{status}: {ADDED.get(status, '')} Entry {answer.get('entry_id', '')}.")


@queue.command()
@TARGET
@ENTRY
@click.argument("text")
@client_command
def edit(client: Client, target: str, entry: str, text: str) -> None:
    """Let a waiting message say TEXT (- reads it from stdin) instead."""
    id, chosen = _entry(client, target, entry)
    payload = {"session_id": id, "entry_id": chosen, "content": text_or_stdin(text)}
    answer = client.call("message.queue.update", payload)
    if not client.out.data(answer):
        client.out.say(f"Entry {chosen} is changed.")


@queue.command()
@TARGET
@ENTRY
@client_command
def remove(client: Client, target: str, entry: str) -> None:
    """Take a waiting message out of the queue."""
    id, chosen = _entry(client, target, entry)
    answer = client.call("message.queue.remove", {"session_id": id, "entry_id": chosen})
    if not client.out.data(answer):
        client.out.say(f"Entry {chosen} is removed.")


@queue.command()
@TARGET
@click.option("--yes", is_flag=True, help="Do not ask.")
@client_command
def clear(client: Client, target: str, yes: bool) -> None:
    """Take all waiting messages out of the queue."""
    if not yes and not sys.stdin.isatty():
        raise click.UsageError("Nobody can be asked here: say --yes to remove all messages that wait.")
    id = _session(client, target, WAITING)
    if not yes:
        waiting = client.call("message.queue.get", {"session_id": id}).get("count", 0)
        click.confirm(f"Remove {_counted(waiting)} of session {id}?", abort=True, err=True)
    answer = client.call("message.queue.clear", {"session_id": id})
    if not client.out.data(answer):
        removed = answer.get("removed", 0)
        client.out.say(f"{_counted(removed)} removed." if removed else "Nothing waited.")


def _counted(number: int) -> str:
    return "1 message" if number == 1 else f"{number} messages"


@queue.command()
@TARGET
@ENTRY
@click.argument("place", type=click.IntRange(min=0))
@client_command
def move(client: Client, target: str, entry: str, place: int) -> None:
    """Move a waiting message to PLACE, counted from 0; the others keep their order."""
    id, waiting = _waiting(client, target)
    chosen = _chosen(client, id, waiting, entry)
    ids = [each["id"] for each in waiting if each["id"] != chosen]
    ids.insert(place, chosen)
    answer = client.call("message.queue.reorder", {"session_id": id, "entry_ids": ids})
    if not client.out.data(answer):
        client.out.say(f"Entry {chosen} is at place {ids.index(chosen)}.")


@queue.command("send-now")
@TARGET
@ENTRY
@client_command
def send_now(client: Client, target: str, entry: str) -> None:
    """Give a waiting message to the agent now: the present turn ends for it, the others follow later."""
    id, chosen = _entry(client, target, entry)
    answer = client.call("message.queue.send_now", {"session_id": id, "entry_id": chosen})
    if client.out.data(answer):
        return
    if answer.get("status") == "sent":
        client.out.say(f"Entry {chosen} is sent: the agent has it.")
    else:
        client.out.say(
            f"Entry {chosen} is not with the agent yet; `kandev message status {chosen}` says where it is."
        )


@queue.command()
@TARGET
@client_command
def run(client: Client, target: str) -> None:
    """Hand out the next waiting message at once, also one that waits for another try."""
    id = _session(client, target, WAITING)
    answer = client.call("message.queue.drain", {"session_id": id})
    if not client.out.data(answer):
        waits = answer.get("count", 0)
        client.out.say(f"The queue runs; {_counted(waits)} left in it." if waits else "The queue runs.")


@queue.command()
@TARGET
@client_command
def pause(client: Client, target: str) -> None:
    """Keep what waits, and what comes, until you let it go."""
    _switch(client, _session(client, target, WAITING), on=False)


@queue.command()
@TARGET
@client_command
def resume(client: Client, target: str) -> None:
    """Let a queue run by itself that is parked or was paused."""
    _switch(client, _session(client, target, HELD), on=True)


def _switch(client: Client, session_id: str, *, on: bool) -> None:
    payload = {"session_id": session_id, "auto_run": on}
    answer = client.call("message.queue.auto_run.set", payload)
    if client.out.data(answer):
        return
    waits = _counted(answer.get("count", 0))
    if answer.get("auto_run") is True:
        client.out.say(f"The queue of session {session_id} runs by itself; {waits} left in it.")
    elif on:
        say_why_held(client, session_id, answer)
    else:
        client.out.say(f"The queue of session {session_id} is paused; {waits} in it.")


# -- what is meant ------------------------------------------------------------------------------


def _session(client: Client, target: str, wishes: Sequence[naming.Wish]) -> str:
    return str(naming.session_or_task(client, target, *wishes)["id"])


def _waiting(client: Client, target: str) -> tuple[str, list[Thing]]:
    id = _session(client, target, WAITING)
    entries: list[dict[str, Any]] = client.call("message.queue.get", {"session_id": id}).get("entries", [])
    return id, entries


def _entry(client: Client, target: str, text: str) -> tuple[str, str]:
    """The ids of session and entry. Raises Failed when no such entry waits."""
    id, waiting = _waiting(client, target)
    return id, _chosen(client, id, waiting, text)


def _chosen(client: Client, session_id: str, waiting: list[Thing], text: str) -> str:
    try:
        return str(naming.pick("entry", text, waiting)["id"])
    except naming.Unknown:
        fate = _fate(client, text)
        if fate:
            raise Failed(f"The entry {text} does not wait in the queue of {session_id}. {fate}") from None
        raise Failed(f"No entry {text!r} waits; look with `kandev queue list {session_id}`.") from None


def _fate(client: Client, text: str) -> str:
    """What became of an entry that is named whole; empty when there is none."""
    try:
        told = client.call("message.status", {"entry_id": text})
    except Refused as error:
        if error.code == "NOT_FOUND":
            return ""
        raise
    state = str(told.get("state"))
    return FATES.get(state, state).format(by=line_of(told.get("by") or "somebody"))

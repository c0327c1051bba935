"""`message`: what is said to an agent, what it said, and what became of a message.

Not here: watching live (`tail`), what still waits (`queues`).
"""

from collections import deque
from collections.abc import Iterator
from typing import Any

import click

from kandev.cli import naming
from kandev.cli.client import Client, client_command, text_or_stdin
from kandev.cli.failures import Failed, Refused
from kandev.cli.output import clean, paint
from kandev.cli.transcript import background, sender, settlement, waits

PAGE = 500
AUTHORS = {"user": "blue", "agent": "green", "system": "yellow"}
FATES = {
    "queued": "It waits in the queue.",
    "claimed": "It is on its way to the agent.",
    "delivered": "The agent has it.",
    "removed": "It was taken out of the queue by {by}.",
    "replaced": "A later message of the same automation took its place: {by}.",
    "unknown": "Nobody can tell whether the agent got it; it is not sent again by itself.",
}
"""Every fate of a message, for people."""
SENTENCES = {
    "sent": "The agent has it.",
    "queued": "It waits in the queue.",
    "started": "The session starts with it.",
}


@click.group()
def message() -> None:
    """Send messages, read them, ask what became of them."""


@message.command()
@click.argument("target", metavar="SESSION|TASK")
@click.argument("text")
@click.option("--key", metavar="KEY", help="Idempotency key: the same key is one message.")
@client_command
def send(client: Client, target: str, text: str, key: str | None) -> None:
    """Send TEXT (- reads it from stdin) to a session."""
    session = naming.session_or_task(client, target)
    payload = {
        "task_id": session["task_id"],
        "session_id": session["id"],
        "content": text_or_stdin(text),
        "idempotency_key": key,
    }
    answer = client.call("message.add", payload)
    if client.out.data(answer):
        return
    status = str(answer.get("status", ""))
    client.out.say(f"{status}: {SENTENCES.get(status, '')} Entry {answer.get('entry_id', '')}.")


@message.command("list")
@click.argument("target", metavar="SESSION|TASK")
@click.option("--limit", type=click.IntRange(1, 1000), help="Only the last ones, so many (default: all).")
@click.option("--oldest", is_flag=True, help="With --limit: the first ones instead.")
@click.option("--before", metavar="MESSAGE", help="The ones before this message id.")
@click.option(
    "--after", metavar="MESSAGE", help="The ones after this message id; with --limit the next ones."
)
@client_command
def list_messages(client: Client, /, target: str, oldest: bool, **options: Any) -> None:
    """Show a session's messages, oldest first."""
    limit, placed = options["limit"], options["before"] or options["after"]
    if oldest and (not limit or placed):
        raise click.UsageError("--oldest goes with --limit, and with neither --before nor --after.")
    id = naming.session_or_task(client, target)["id"]
    if placed or oldest:
        found = client.call("message.list", {"session_id": id, **options}).get("messages", [])
    else:
        # Lists begin with the oldest; where the last ones begin is known at the end only.
        found = list(deque(transcript(client, id), limit))
    if client.out.data({"messages": found}):
        return
    for each in found:
        who = sender(each) or str(each.get("author_type", ""))
        kind = "" if each.get("type") == "message" else f" {each.get('type', '')}"
        client.out.say(paint(f"{who}{kind}  {each.get('created_at', '')}", AUTHORS.get(who), bold=True))
        client.out.say(clean(each.get("content", "")))
        if each.get("type") == "clarification_request":
            _question(client, each)


def _question(client: Client, asked: dict[str, Any]) -> None:
    for line in background(asked):
        client.out.say(f"  {line}")
    if not waits(asked):
        client.out.say(f"  {settlement(asked)}")


def transcript(client: Client, session_id: str) -> Iterator[dict[str, Any]]:
    """All messages of a session, page by page, oldest first. A page of long ones is a short page: only an
    empty one is the end."""
    after: object = None
    while True:
        payload = {"session_id": session_id, "limit": PAGE, "after": after}
        page = client.call("message.list", payload).get("messages", [])
        if not page:
            return
        yield from page
        after = page[-1]["id"]


@message.command()
@click.argument("entry", metavar="ENTRY")
@client_command
def status(client: Client, entry: str) -> None:
    """Say what became of a message that was sent; ENTRY is the id that `send` printed."""
    answer = _fate(client, entry)
    if client.out.data(answer):
        return
    if sentence := FATES.get(str(answer.get("state"))):
        client.out.say(paint(sentence.format(by=clean(answer.get("by") or "somebody")), bold=True))
    client.out.facts(answer)


def _fate(client: Client, text: str) -> dict[str, Any]:
    """Of an entry that is named whole, or of one that waits by an end of its id. Raises Failed."""
    try:
        return client.call("message.status", {"entry_id": text})
    except Refused as error:
        if error.code != "NOT_FOUND":
            raise
        waiting = [
            entry
            for session in naming.sessions(client)
            if naming.has_waiting(session)
            for entry in client.call("message.queue.get", {"session_id": session["id"]}).get("entries", [])
        ]
        try:
            chosen = naming.pick("entry", text, waiting)["id"]
        except naming.Unknown:
            raise Failed(
                f"No entry {text!r} is known, and none that waits is named so. The fate of one that waits no "
                "more is told for its whole id, as `kandev message send` printed it."
            ) from None
    return client.call("message.status", {"entry_id": chosen})

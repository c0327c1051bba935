"""`cancel` and `stop`: end a turn, a session, or a task's sessions. Three verbs, three things.

Not here: how they are done and what they wait for (the backend).
"""

from typing import Any

import click

from kandev.cli import naming
from kandev.cli.client import Client, client_command
from kandev.cli.failures import Failed
from kandev.cli.sessions import call_stop, stop_session, told

UNDER_WAY = "cancel timed out, still under way"
"""What a cancel hears whose agent does not obey, in the backend's words."""


@click.command()
@click.argument("target", metavar="SESSION|TASK")
@client_command
def cancel(client: Client, target: str) -> None:
    """Cancel the present turn; session and agent stay."""
    session = naming.session_or_task(client, target)
    id = session["id"]
    answer = client.call("agent.cancel", {"task_id": session.get("task_id"), "session_id": id})
    if answer.get("error") == UNDER_WAY:
        client.out.data(answer)
        raise Failed(
            f"{UNDER_WAY}. A process that does not obey is ended and replaced; "
            f"`kandev session explain {id}` shows how far that is."
        )
    told(client, answer, "" if client.out.as_json else _what_came_of_it(client, session))


def _what_came_of_it(client: Client, before: dict[str, Any]) -> str:
    """The truth about a cancel that succeeded, from what it left behind."""
    try:
        after = client.call("session.get", {"session_id": before["id"]})
    except Failed:
        return f"No turn of session {before['id']} runs any more."
    waiting = _waiting(after, paused=naming.is_held(before))
    # The revision grows with every cancel of a turn, and with nothing else.
    if after.get("cancellation_revision") != before.get("cancellation_revision"):
        return " ".join(filter(None, (_cancelled(after), waiting)))
    parked_now = after.get("parked_reason") not in (None, before.get("parked_reason"))
    if parked_now and waiting:
        starts = "the agent still starts. " if after.get("state") == "STARTING" else "the agent stays. "
        return f"Cancelled before it began: {starts}{waiting}"
    return "No turn was running; nothing was cancelled."


def _cancelled(after: dict[str, Any]) -> str:
    state = after.get("state")
    if state == "WAITING_FOR_INPUT":
        return "Turn cancelled; the session takes a new prompt."
    if state in naming.WORKING:
        return "Turn cancelled; the session is at work on what came next."
    return f"Turn cancelled; the session is {state}."


def _waiting(session: dict[str, Any], *, paused: bool) -> str:
    """What became of the messages behind the turn. A paused queue stays so, whatever is said."""
    queue = session.get("queue") or {}
    count = queue.get("count", 0)
    if not count or queue.get("auto_run", True):
        return ""
    wait, them = ("1 message waits", "it") if count == 1 else (f"{count} messages wait", "them")
    way = f"`kandev queue resume {session['id']}`"
    if paused:
        return f"{wait} parked; {way} releases {them}."
    return f"{wait} parked; the next `kandev message send` releases {them}, and so does {way}."


@click.command()
@click.argument("task", required=False)
@click.option("--session", "session_id", metavar="SESSION|TASK", help="Stop one session instead of a task.")
@click.option("--reason", help="Why, for the record.")
@click.option("--force", is_flag=True, help="Without the polite steps.")
@client_command
def stop(client: Client, task: str | None, session_id: str | None, reason: str | None, force: bool) -> None:
    """Stop all sessions of a TASK, or one session."""
    if (task is None) == (session_id is None):
        raise click.UsageError("Name a TASK, or a session with --session.")
    if session_id is not None:
        stop_session(client, session_id, reason, force)
    elif task is not None:
        id = naming.task(client, task)["id"]
        payload = {"task_id": id, "reason": reason, "force": force or None}
        answer = call_stop(client, "orchestrator.stop", payload)
        failures = (answer.get("details") or {}).get("failures") or {}
        if failures:
            client.out.data(answer)
            named = "; ".join(f"{session}: {why}" for session, why in failures.items())
            raise Failed(f"Not every session of task {id} was stopped: {named}")
        told(client, answer, f"Task {id} is stopped.")

"""`cancel` and `stop`: end a turn, a session, or a task's sessions. Three verbs, three things.

Not here: how they are done and what they wait for (the backend).
"""

import click

from kandev.cli import naming
from kandev.cli.client import Client, client_command
from kandev.cli.failures import Failed
from kandev.cli.sessions import stop_session, told


@click.command()
@click.argument("target", metavar="SESSION|TASK")
@client_command
def cancel(client: Client, target: str) -> None:
    """Cancel the present turn; session and agent stay."""
    session = naming.session_or_task(client, target)
    answer = client.call("agent.cancel", {"task_id": session.get("task_id"), "session_id": session["id"]})
    told(client, answer, f"No turn runs any more; session {session['id']} takes a new prompt.")


@click.command()
@click.argument("task", required=False)
@click.option("--session", "session_id", metavar="SESSION", help="Stop one session instead of a task.")
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
        answer = client.call("orchestrator.stop", payload)
        failures = (answer.get("details") or {}).get("failures") or {}
        if failures:
            client.out.data(answer)
            named = "; ".join(f"{session}: {why}" for session, why in failures.items())
            raise Failed(f"Not every session of task {id} was stopped: {named}")
        told(client, answer, f"Task {id} is stopped.")

"""`session`: conversations of agents, for people.

Not here: their messages (`messages`), watching them (`tail`), cancelling a turn (`turns`).
"""

from typing import Any

import click

from kandev.cli import naming
from kandev.cli.client import Client, client_command, text_or_stdin
from kandev.cli.failures import Failed
from kandev.cli.output import clean, paint, shown_id

DIFF_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


@click.group()
def session() -> None:
    """Start, show, resume and review sessions."""


@session.command("list")
@click.argument("task_id", metavar="[TASK]", required=False)
@client_command
def list_sessions(client: Client, task_id: str | None) -> None:
    """List the sessions of a task, or of all tasks that are not archived."""
    if task_id:
        found = naming.of_task(client, naming.task(client, task_id))
    else:
        found = naming.sessions(client, include_archived=False)
    if client.out.data({"sessions": found}):
        return
    rows = (
        (
            shown_id(s["id"]),
            s["state"],
            s.get("waiting_for", ""),
            s.get("queue", {}).get("count", ""),
            shown_id(s["task_id"]),
            s.get("name", ""),
        )
        for s in found
    )
    empty = "There are no sessions; start one with `kandev session launch TASK`."
    client.out.table(("id", "state", "waits for", "queue", "task", "name"), rows, empty)


@session.command()
@click.argument("session_id", metavar="SESSION|TASK")
@client_command
def show(client: Client, session_id: str) -> None:
    """Show a session."""
    found = naming.session_or_task(client, session_id)
    if not client.out.data(found):
        client.out.facts(found)


@session.command()
@click.argument("task_id", metavar="TASK")
@click.option("--prompt", metavar="TEXT", help="First message; - reads it from stdin.")
@click.option("--agent", metavar="NAME", help="Profile (or known agent); default: the task's.")
@click.option(
    "--intent",
    type=click.Choice(["start", "start_created", "prepare", "resume"]),
    help="start: a new session (default); prepare: without its agent; the others need --session.",
)
@click.option("--session", "session_id", metavar="SESSION", help="The session to start or resume.")
@client_command
def launch(client: Client, /, task_id: str, **options: Any) -> None:
    """Start a session on a task."""
    agent, chosen = options["agent"], options["session_id"]
    payload = {
        "task_id": naming.task(client, task_id)["id"],
        "intent": options["intent"],
        "prompt": text_or_stdin(options["prompt"]),
        "agent_profile_id": naming.profile(client, agent)["id"] if agent else None,
        "session_id": naming.session(client, chosen)["id"] if chosen else None,
    }
    answer = client.call("session.launch", payload)
    if client.out.data(answer):
        return
    made = answer["session_id"]
    client.out.say(
        f"Session {made} is {answer.get('state', 'STARTING')}; watch it with `kandev tail {made}`."
    )
    if answer.get("worktree_path"):
        client.out.say(f"It works in {clean(answer['worktree_path'])}.")


@session.command()
@click.argument("session_id", metavar="SESSION")
@click.option("--reason", help="Why, for the record.")
@click.option("--force", is_flag=True, help="Without the polite steps.")
@client_command
def stop(client: Client, session_id: str, reason: str | None, force: bool) -> None:
    """Stop a session; its agent ends."""
    stop_session(client, session_id, reason, force)


def stop_session(client: Client, session_id: str, reason: str | None, force: bool) -> None:
    """Shared with `kandev stop --session`."""
    id = naming.session(client, session_id)["id"]
    answer = client.call("session.stop", {"session_id": id, "reason": reason, "force": force or None})
    told(client, answer, f"Session {id} is stopped.")


@session.command()
@click.argument("session_id", metavar="SESSION|TASK")
@client_command
def recover(client: Client, session_id: str) -> None:
    """Resume a session that is idle or over."""
    id = naming.session_or_task(client, session_id)["id"]
    answer = client.call("session.recover", {"session_id": id})
    told(client, answer, f"Session {id} is {answer.get('state', 'STARTING')}.")


def told(client: Client, answer: dict[str, Any], sentence: str) -> None:
    """An answer with `success`; False is a failure. Raises Failed."""
    shown = client.out.data(answer)
    if answer.get("success") is False:
        raise Failed(str(answer.get("error") or "The backend could not do it."))
    if not shown:
        client.out.say(sentence)


@session.command()
@click.argument("session_id", metavar="SESSION|TASK")
@client_command
def explain(client: Client, session_id: str) -> None:
    """Say what a session does and what it waits for."""
    id = naming.session_or_task(client, session_id)["id"]
    answer = client.call("session.explain", {"session_id": id})
    if client.out.data(answer):
        return
    client.out.say(paint(clean(answer.get("sentence", "")), bold=True))
    client.out.facts({name: value for name, value in answer.items() if name != "sentence"})


@session.command()
@click.argument("session_id", metavar="SESSION|TASK")
@click.argument("path", required=False)
@client_command
def diff(client: Client, session_id: str, path: str | None) -> None:
    """Show what a session's worktree changed, in whole or of one PATH."""
    id = naming.session_or_task(client, session_id)["id"]
    answer = client.call("session.diff", {"session_id": id, "path": path})
    if client.out.data(answer):
        return
    for line in clean(answer.get("diff", "")).split("\n")[:-1]:
        client.out.say(paint(line, DIFF_COLOURS.get(line[:1])))


@session.command()
@click.argument("session_id", metavar="SESSION|TASK")
@client_command
def changes(client: Client, session_id: str) -> None:
    """List the files that a session's worktree changed."""
    id = naming.session_or_task(client, session_id)["id"]
    answer = client.call("session.changes", {"session_id": id})
    if client.out.data(answer):
        return
    rows = (
        (f["status"], f"+{f['additions']}", f"-{f['deletions']}", _path(f)) for f in answer.get("files", [])
    )
    client.out.table(("status", "+", "-", "path"), rows, "Nothing has changed.")


def _path(file: dict[str, Any]) -> str:
    return f"{file['old_path']} → {file['path']}" if file.get("old_path") else str(file["path"])

"""`session`: conversations of agents, for people.

Not here: their messages (`messages`), watching them (`tail`), cancelling a turn (`turns`).
"""

import os
from pathlib import Path
from typing import Any

import click

from kandev.cli import naming
from kandev.cli.client import Client, client_command, text_or_stdin
from kandev.cli.failures import Failed, Refused
from kandev.cli.output import clean, paint, shown_id

NOTHING_LIVES = "execution not found"
"""What a stop hears when nothing lives, in the backend's words."""
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
@click.option(
    "--prompt", metavar="TEXT", help="First message; - reads it from stdin (default: what the task says)."
)
@click.option("--no-prompt", is_flag=True, help="Start the agent with nothing to say.")
@click.option("--agent", metavar="NAME", help="Profile (or known agent); default: the task's.")
@click.option(
    "--intent",
    type=click.Choice(["start", "start_created", "prepare", "resume"]),
    help="start: a new session (default); prepare: without its agent; the others need --session.",
)
@click.option("--session", "session_id", metavar="SESSION|TASK", help="The session to start or resume.")
@client_command
def launch(client: Client, /, task_id: str, **options: Any) -> None:
    """Start a session on a task. The first one begins with the task's description, else its title."""
    agent, chosen, prompt = options["agent"], options["session_id"], text_or_stdin(options["prompt"])
    if prompt is not None and options["no_prompt"]:
        raise click.UsageError("Give --prompt or --no-prompt, not both.")
    task = naming.task(client, task_id)
    said, begins = None, options["intent"] in (None, "start", "start_created")
    if prompt is None and not options["no_prompt"] and begins:
        said, prompt = _from_task(client, task)
    payload = {
        "task_id": task["id"],
        "intent": options["intent"],
        "prompt": prompt,
        "agent_profile_id": naming.profile(client, agent)["id"] if agent else None,
        "session_id": naming.session_or_task(client, chosen, naming.rests, exact=False)["id"]
        if chosen
        else None,
    }
    answer = client.call("session.launch", payload)
    if not client.out.data(answer):
        _launched(client, answer, said, silent=begins and prompt is None)


def _from_task(client: Client, task: naming.Thing) -> tuple[str | None, str | None]:
    """What a task's first agent is told and where that comes from; nothing when an earlier one was told."""
    if any(s.get("state") != "CREATED" for s in naming.of_task(client, task)):
        return None, None
    description = str(task.get("description") or "").strip()
    return ("description", description) if description else ("title", str(task["title"]))


def _launched(client: Client, answer: dict[str, Any], said: str | None, *, silent: bool) -> None:
    made, state = answer["session_id"], answer.get("state", "STARTING")
    client.out.say(f"Session {made} is {state}; watch it with `kandev tail {made}`.")
    if answer.get("worktree_path"):
        client.out.say(f"It works in {clean(answer['worktree_path'])}.")
    if said:
        client.out.say(f"Its first message is the task's {said}.")
    elif silent:
        client.out.say(f"It was told nothing; say something with `kandev message send {made} TEXT`.")


@session.command()
@click.argument("session_id", metavar="SESSION|TASK")
@click.option("--reason", help="Why, for the record.")
@click.option("--force", is_flag=True, help="Without the polite steps.")
@client_command
def stop(client: Client, session_id: str, reason: str | None, force: bool) -> None:
    """Stop a session; its agent ends."""
    stop_session(client, session_id, reason, force)


def stop_session(client: Client, session_id: str, reason: str | None, force: bool) -> None:
    """Shared with `kandev stop --session`."""
    id = naming.session_or_task(client, session_id, naming.lives)["id"]
    answer = call_stop(client, "session.stop", {"session_id": id, "reason": reason, "force": force or None})
    told(client, answer, f"Session {id} is stopped.")


def call_stop(client: Client, action: str, payload: dict[str, Any]) -> dict[str, Any]:
    """A stop; that nothing lives is told to people in their words. Raises Failed."""
    try:
        return client.call(action, payload)
    except Refused as error:
        if error.code == "NOT_FOUND" and error.message == NOTHING_LIVES and not client.out.as_json:
            raise Failed(_nothing_to_stop(client, payload)) from None
        raise


def _nothing_to_stop(client: Client, payload: dict[str, Any]) -> str:
    """What was stopped before may still be ending, or could not be ended."""
    if "task_id" in payload:
        found = naming.of_task(client, {"id": payload["task_id"]})
    else:
        found = [client.call("session.get", {"session_id": payload["session_id"]})]
    left = next((s["id"] for s in found if s.get("execution")), None)
    if left:
        return f"It is stopped already, and its process is not gone yet; see `kandev session explain {left}`."
    return "Nothing of it runs: there is nothing to stop."


@session.command()
@click.argument("session_id", metavar="SESSION|TASK")
@client_command
def recover(client: Client, session_id: str) -> None:
    """Resume a session that is idle or over."""
    id = _resting(client, session_id)
    answer = client.call("session.recover", {"session_id": id})
    told(client, answer, f"Session {id} is {answer.get('state', 'STARTING')}.")


def _resting(client: Client, text: str) -> str:
    """The id of a session, of a task's the one that can be taken up."""
    return str(naming.session_or_task(client, text, naming.rests, exact=False)["id"])


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
    session = naming.session_or_task(client, session_id, exact=False)
    answer = client.call("session.diff", {"session_id": session["id"], "path": path})
    if client.out.data(answer):
        return
    if not answer.get("diff"):
        _no_changes(session.get("worktree_path"), path)
    for line in clean(answer.get("diff", "")).split("\n")[:-1]:
        client.out.say(paint(line, DIFF_COLOURS.get(line[:1])))


def _no_changes(worktree: str | None, path: str | None) -> None:
    """Raises Failed for a path that is neither in the worktree nor in what it changed."""
    # The folder of a backend elsewhere cannot be looked into.
    if path and worktree and Path(worktree).is_dir() and not os.path.lexists(Path(worktree, path)):
        raise Failed(f"There is no {path!r} in {worktree}; `kandev session changes` lists what changed.")
    click.echo(f"No changes against the base{f' in {path}' if path else ''}.", err=True)


@session.command()
@click.argument("session_id", metavar="SESSION|TASK")
@client_command
def changes(client: Client, session_id: str) -> None:
    """List the files that a session's worktree changed."""
    id = naming.session_or_task(client, session_id, exact=False)["id"]
    answer = client.call("session.changes", {"session_id": id})
    if client.out.data(answer):
        return
    rows = (
        (f["status"], f"+{f['additions']}", f"-{f['deletions']}", _path(f)) for f in answer.get("files", [])
    )
    client.out.table(("status", "+", "-", "path"), rows, "Nothing has changed.")


def _path(file: dict[str, Any]) -> str:
    return f"{file['old_path']} → {file['path']}" if file.get("old_path") else str(file["path"])

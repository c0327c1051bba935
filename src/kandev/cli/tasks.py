"""`task`: cards on the board, for people.

Not here: their sessions (`sessions`), stopping them (`turns`).
"""

import sys
from pathlib import Path
from typing import Any

import click

from kandev.cli import naming
from kandev.cli.client import Client, client_command, text_or_stdin
from kandev.cli.failures import Failed, Refused
from kandev.cli.output import COLOURS, clean, paint, shown_id


@click.group()
def task() -> None:
    """Create, list, move and finish tasks."""


@task.command("create")
@click.argument("title")
@click.option("--repo", metavar="PATH", help="Repository to work on; it is added when needed.")
@click.option("--base", metavar="BRANCH", help="Branch to begin at (default: the repository's).")
@click.option("--agent", metavar="NAME", help="Profile (or known agent) that does the work.")
@click.option("--prompt", metavar="TEXT", help="What is to be done; - reads it from stdin.")
@click.option("--start", is_flag=True, help="Start the agent on it at once.")
@click.option("--parent", metavar="TASK", help="Task that this one is a part of.")
@click.option("--workspace", metavar="NAME", help="Workspace (default: the first one).")
@click.option("--workflow", metavar="NAME", help="Workflow (default: the workspace's first one).")
@client_command
def create(client: Client, /, title: str, **options: Any) -> None:
    """Create a task."""
    if options["base"] and not options["repo"]:
        raise click.UsageError("--base needs --repo.")
    workspace = naming.workspace(client, options["workspace"])
    workflow = naming.workflow(client, workspace, options["workflow"])
    agent, parent = options["agent"], options["parent"]
    payload: dict[str, Any] = {
        "workspace_id": workspace["id"],
        "workflow_id": workflow["id"],
        "title": title,
        "description": text_or_stdin(options["prompt"]),
        "agent_profile_id": naming.profile(client, agent)["id"] if agent else None,
        "parent_id": naming.task(client, parent)["id"] if parent else None,
        "start_agent": options["start"],
    }
    if options["repo"]:
        repository = repository_at(client, workspace, options["repo"])
        chosen = {"repository_id": repository, "base_branch": options["base"]}
        payload["repositories"] = [{name: value for name, value in chosen.items() if value}]
    answer = client.call("task.create", payload)
    _created(client, answer)


def _created(client: Client, answer: dict[str, Any]) -> None:
    made, session = answer.get("task", answer), answer.get("session_id")
    if not client.out.data(answer):
        client.out.say(f"Task {made['id']} created.")
        if session:
            client.out.say(
                f"Session {session} is starting; `kandev tail {session}` shows whether it came up, "
                "and what it does."
            )
        else:
            client.out.say(f"Start an agent on it with `kandev session launch {made['id']}`.")
    if answer.get("start_error"):
        raise Failed(f"The task was created, but its agent was not started: {answer['start_error']}")


def repository_at(client: Client, workspace: naming.Thing, path: str) -> str:
    """The id of the repository at a path, added to the workspace when it is not there yet."""
    where = str(Path(path).expanduser().absolute())
    try:
        added = client.call("repository.create", {"workspace_id": workspace["id"], "local_path": where})
    except Refused as error:
        known = (error.error.get("details") or {}).get("repository_id")
        if error.code == "CONFLICT" and known:
            return str(known)
        raise
    return str(added["id"])


@task.command("list")
@click.option("--workspace", metavar="NAME", help="Only of this workspace.")
@click.option("--all", "archived", is_flag=True, help="Archived ones too.")
@client_command
def list_tasks(client: Client, workspace: str | None, archived: bool) -> None:
    """List tasks."""
    of = naming.workspace(client, workspace)["id"] if workspace else None
    found = naming.tasks(client, workspace_id=of, include_archived=archived)
    if client.out.data({"tasks": found}):
        return
    steps = _steps(client, {str(each["workspace_id"]) for each in found})
    rows = [
        (shown_id(t["id"]), t["state"], steps.get(t["workflow_step_id"], ""), t["title"], _note(t))
        for t in found
    ]
    columns: tuple[str, ...] = ("id", "state", "step", "title", "note")
    client.out.table(columns, rows, "There are no tasks; make one with `kandev task create`.")


def _note(task: naming.Thing) -> str:
    """What a person should know beyond the state: it does not tell that a start failed."""
    return f"start failed: {task['error']}" if task.get("error") else ""


def _steps(client: Client, workspaces: set[str]) -> dict[str, str]:
    """Names of steps by id."""
    flows = (client.listed("workflow.list", "workflows", {"workspace_id": id}) for id in sorted(workspaces))
    return {step["id"]: step["name"] for flow in flows for each in flow for step in each["steps"]}


@task.command()
@click.argument("task_id", metavar="TASK")
@client_command
def show(client: Client, task_id: str) -> None:
    """Show a task and its sessions."""
    found = naming.task(client, task_id)
    sessions = naming.of_task(client, found)
    if client.out.data({**found, "sessions": sessions}):
        return
    shown = {name: value for name, value in found.items() if name != "error"}
    if waits := found.get("pending_move"):
        step = _steps(client, {found["workspace_id"]}).get(waits["workflow_step_id"], "a step that is gone")
        shown["pending_move"] = f"to {step}, at the end of the turn"
    client.out.facts(shown)
    if note := _note(found):
        client.out.say(paint(clean(note), COLOURS["FAILED"], bold=True))
    client.out.say("")
    rows = (
        (shown_id(s["id"]), s["state"], s.get("name", ""), s.get("since", ""), s.get("error", ""))
        for s in sessions
    )
    client.out.table(("session", "state", "name", "since", "note"), rows, "It has no session.")


@task.command()
@click.argument("task_id", metavar="TASK")
@click.argument("step")
@click.option("--position", type=click.IntRange(min=0), help="Place in the step, from 0.")
@client_command
def move(client: Client, task_id: str, step: str, position: int | None) -> None:
    """Move a task to a STEP, named or by id."""
    found = naming.task(client, task_id)
    flow = client.call("workflow.get", {"id": found["workflow_id"]})
    wanted = naming.pick("step", step, flow["steps"], "name")
    payload = {"id": found["id"], "workflow_step_id": wanted["id"], "position": position}
    answer = client.call("task.move", payload)
    there = position is None and wanted["id"] == found["workflow_step_id"]
    what = f"was in {wanted['name']} already" if there else f"is in {wanted['name']}"
    withdrawn = (
        "; the move that waited for the end of the turn is withdrawn" if found.get("pending_move") else ""
    )
    _changed(client, {"id": found["id"], **answer}, what + withdrawn)


@task.command()
@click.argument("task_id", metavar="TASK")
@click.option("--undo", is_flag=True, help="Take the archive mark away.")
@client_command
def archive(client: Client, task_id: str, undo: bool) -> None:
    """Archive a task; its sessions end."""
    id = naming.task(client, task_id)["id"]
    answer = client.call("task.unarchive" if undo else "task.archive", {"id": id})
    _changed(client, {"id": id, **answer}, "is back on the board" if undo else "is archived")


@task.command()
@click.argument("task_id", metavar="TASK")
@click.option("--yes", is_flag=True, help="Do not ask.")
@client_command
def delete(client: Client, task_id: str, yes: bool) -> None:
    """Delete a task with its sessions."""
    if not yes and not sys.stdin.isatty():
        raise click.UsageError("Nobody can be asked here: say --yes to delete the task and its sessions.")
    found = naming.task(client, task_id)
    if not yes:
        click.confirm(f"Delete {found['title']!r} and its sessions?", abort=True, err=True)
    answer = client.call("task.delete", {"id": found["id"]})
    _changed(client, {"id": found["id"], **answer}, "is deleted")


@task.command("state")
@click.argument("task_id", metavar="TASK")
@click.argument("state")
@client_command
def set_state(client: Client, task_id: str, state: str) -> None:
    """Set a task's STATE (TODO, REVIEW, COMPLETED, …)."""
    id = naming.task(client, task_id)["id"]
    answer = client.call("task.state", {"id": id, "state": state.upper()})
    _changed(client, {"id": id, **answer}, f"is {state.upper()}")


def _changed(client: Client, answer: dict[str, Any], what: str) -> None:
    if client.out.data(answer):
        return
    client.out.say(f"Task {answer['id']} {what}.")
    if answer.get("worktree_kept"):
        client.out.say(f"Its worktree stays: {clean(answer.get('reason', ''))}")

"""`repository`, `workspace` and `workflow`: what tasks belong to and work on.

Not here: tasks (`tasks`).
"""

from pathlib import Path

import click

from kandev.cli import naming
from kandev.cli.client import Client, client_command
from kandev.cli.output import shown_id


@click.group()
def repository() -> None:
    """Add and list repositories."""


@repository.command("list")
@click.option("--workspace", metavar="NAME", help="Only of this workspace.")
@client_command
def list_repositories(client: Client, workspace: str | None) -> None:
    """List repositories."""
    found = [
        each
        for place in _places(client, workspace)
        for each in client.listed("repository.list", "repositories", {"workspace_id": place["id"]})
    ]
    if client.out.data({"repositories": found}):
        return
    rows = ((shown_id(r["id"]), r["name"], r["default_branch"], r["local_path"]) for r in found)
    empty = "There are no repositories; add one with `kandev repository add PATH`."
    client.out.table(("id", "name", "branch", "path"), rows, empty)


@repository.command()
@click.argument("path")
@click.option("--name", help="Its name (default: the folder's).")
@click.option("--branch", metavar="BRANCH", help="Default branch (default: as the repository has it).")
@click.option("--workspace", metavar="NAME", help="Workspace (default: the first one).")
@client_command
def add(client: Client, path: str, name: str | None, branch: str | None, workspace: str | None) -> None:
    """Add the git repository at PATH."""
    payload = {
        "workspace_id": naming.workspace(client, workspace)["id"],
        "local_path": str(Path(path).expanduser().absolute()),
        "name": name,
        "default_branch": branch,
    }
    made = client.call("repository.create", payload)
    if not client.out.data(made):
        client.out.say(
            f"Repository {made['name']} ({made['id']}) added; its default branch is {made['default_branch']}."
        )


@click.group()
def workspace() -> None:
    """Create and list workspaces."""


@workspace.command("list")
@client_command
def list_workspaces(client: Client) -> None:
    """List workspaces."""
    found = client.listed("workspace.list", "workspaces")
    if client.out.data({"workspaces": found}):
        return
    rows = ((shown_id(w["id"]), w["name"], w["created_at"]) for w in found)
    client.out.table(("id", "name", "created"), rows, "There are no workspaces.")


@workspace.command()
@click.argument("name")
@client_command
def create(client: Client, name: str) -> None:
    """Create a workspace."""
    made = client.call("workspace.create", {"name": name})
    if not client.out.data(made):
        client.out.say(f"Workspace {made['id']} created.")


@click.group()
def workflow() -> None:
    """List workflows and their steps."""


@workflow.command("list")
@click.option("--workspace", metavar="NAME", help="Only of this workspace.")
@client_command
def list_workflows(client: Client, workspace: str | None) -> None:
    """List workflows with their steps, in order."""
    found = [
        each
        for place in _places(client, workspace)
        for each in client.listed("workflow.list", "workflows", {"workspace_id": place["id"]})
    ]
    if client.out.data({"workflows": found}):
        return
    rows = ((shown_id(w["id"]), w["name"], " → ".join(s["name"] for s in w["steps"])) for w in found)
    client.out.table(("id", "name", "steps"), rows, "There are no workflows.")


def _places(client: Client, workspace: str | None) -> list[naming.Thing]:
    """The named workspace, else all."""
    if workspace:
        return [naming.workspace(client, workspace)]
    return client.listed("workspace.list", "workspaces")

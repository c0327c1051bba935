"""`agents` and `profile`: which agents are here, how to get the others, and how each is started.

Not here: looking for agents (`execution.catalogue`).
"""

import asyncio
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import click

from kandev.cli import naming
from kandev.cli.client import Client, client_command
from kandev.cli.failures import Unreachable
from kandev.cli.output import shown_id


@click.command()
@client_command
def agents(client: Client) -> None:
    """List the agents that Kandev knows: found on this machine, or how to get them."""
    try:
        found = client.listed("agent.list", "agents")
    except Unreachable:
        # What is on PATH can be said without a backend, and is asked before the first start.
        found = look_here()
    if client.out.data({"agents": found}):
        return
    here = [agent for agent in found if agent.get("found")]
    rows = ((a["name"], a.get("version"), _words(a.get("command", ()))) for a in here)
    client.out.table(("here", "version", "command"), rows, "No agent is here.")
    client.out.say("")
    others = ((a["name"], a.get("install"), a.get("login")) for a in found if not a.get("found"))
    client.out.table(("not here", "how to get it", "then"), others, "All known agents are here.")


def look_here() -> list[dict[str, Any]]:
    """The known agents, looked for on our own PATH."""
    from kandev.execution.catalogue import PathCatalogue

    return [asdict(agent) for agent in asyncio.run(PathCatalogue().look(versions=True))]


def _words(command: Sequence[str]) -> str:
    return " ".join(command)


@click.group()
def profile() -> None:
    """Create and list profiles: how agents are started."""


@profile.command("list")
@client_command
def list_profiles(client: Client) -> None:
    """List profiles."""
    found = client.listed("agent.profile.list", "profiles")
    if client.out.data({"profiles": found}):
        return
    rows = ((shown_id(p["id"]), p["name"], p["protocol"], _words(p["command"])) for p in found)
    empty = "There are no profiles; make one with `kandev profile create NAME -- COMMAND`."
    client.out.table(("id", "name", "protocol", "command"), rows, empty)


@profile.command(context_settings={"ignore_unknown_options": True})
@click.argument("name")
@click.argument("words", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- COMMAND…")
@click.option("--protocol", type=click.Choice(["acp", "codex"]), default="acp", show_default=True)
@click.option("--env", multiple=True, metavar="NAME=VALUE", help="Environment of the agent; may be repeated.")
@click.option("--model", help="Model to choose after the start.")
@click.option("--mode", help="Mode to choose after the start.")
@click.option("--auto-approve", is_flag=True, help="Allow whatever the agent asks.")
@client_command
def create(client: Client, /, name: str, words: tuple[str, ...], **options: Any) -> None:
    """Create a profile that starts an agent with COMMAND."""
    payload = {
        "name": name,
        "command": list(words),
        "protocol": options["protocol"],
        "env": dict(map(_variable, options["env"])) or None,
        "model": options["model"],
        "mode": options["mode"],
        "auto_approve": options["auto_approve"] or None,
    }
    made = client.call("agent.profile.create", payload)
    if not client.out.data(made):
        client.out.say(f"Profile {made['id']} created.")


def _variable(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign or not name:
        raise click.UsageError(f"--env takes NAME=VALUE, not {text!r}.")
    return name, value


@profile.command()
@click.argument("profile_id", metavar="PROFILE")
@client_command
def show(client: Client, profile_id: str) -> None:
    """Show a profile; values of secret environment read ***."""
    found = naming.profile(client, profile_id)
    if not client.out.data(found):
        client.out.facts(found)

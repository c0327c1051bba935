"""`permission`: what agents ask to be allowed, and the answers.

Not here: deciding by itself (a profile's auto-approve, in agentctl).
"""

from typing import Any

import click

from kandev.cli import naming
from kandev.cli.client import Client, client_command
from kandev.cli.failures import Failed
from kandev.cli.messages import transcript

ALLOWING = ("allow_once", "allow_always")
"""Kinds of options that allow, the smaller one first."""


@click.group()
def permission() -> None:
    """List and answer what agents want to be allowed; their questions are for `kandev answer`."""


@permission.command("list")
@click.argument("target", metavar="SESSION|TASK")
@client_command
def list_permissions(client: Client, target: str) -> None:
    """List the open requests of a session."""
    session = naming.session_or_task(client, target, naming.asks, naming.works)
    waiting = _open(client, session["id"])
    if client.out.data({"requests": waiting}):
        return
    rows = ((w["request_id"], w["title"], _options(w)) for w in waiting)
    client.out.table(("request", "title", "options"), rows, "No request for permission waits.")
    if session.get("questions"):
        client.out.say(f"A question is open; `kandev answer {session['id']}` shows it.")


@permission.command()
@click.argument("target", metavar="SESSION|TASK")
@click.argument("request", required=False)
@click.option("--option", "option_id", metavar="OPTION", help="The option's id.")
@click.option("--allow", is_flag=True, help="The option that allows, once if there is one.")
@click.option("--reject", is_flag=True, help="Reject it.")
@click.option("--cancel", is_flag=True, help="Close it without a decision.")
@client_command
def answer(
    client: Client, /, target: str, request: str | None, option_id: str | None, **verdicts: bool
) -> None:
    """Answer a REQUEST (default: the only open one) of a session."""
    given = [name for name, wanted in verdicts.items() if wanted]
    if len(given) + (option_id is not None) != 1:
        raise click.UsageError("Give one of --option, --allow, --reject and --cancel.")
    verdict = given[0] if given else None
    id = naming.session_or_task(client, target, naming.asks, naming.works)["id"]
    payload: dict[str, Any] = {"session_id": id, "request_id": request}
    if request is None or verdict == "allow":
        asked = _chosen(_open(client, id), request)
        payload["request_id"] = asked["request_id"]
        if verdict == "allow":
            option_id = _allowing(asked)
    if option_id is not None:
        payload["option_id"] = option_id
    else:
        payload["rejected" if verdict == "reject" else "cancelled"] = True
    said = client.call("permission.respond", payload)
    if not client.out.data(said):
        client.out.say(f"Request {payload['request_id']} is answered.")


def _open(client: Client, session_id: str) -> list[dict[str, Any]]:
    """`{request_id, title, options}` of each request without an answer, oldest first."""
    asked = (m for m in transcript(client, session_id) if m.get("type") == "permission_request")
    return [
        {"request_id": m["metadata"].get("request_id"), "title": m["content"], **_choices(m)}
        for m in asked
        if m.get("metadata", {}).get("status", "pending") == "pending"
    ]


def _choices(message: dict[str, Any]) -> dict[str, Any]:
    return {"options": message["metadata"].get("options", [])}


def _options(asked: dict[str, Any]) -> str:
    return ", ".join(f"{o.get('option_id')} ({o.get('name')})" for o in asked["options"])


def _chosen(waiting: list[dict[str, Any]], request: str | None) -> dict[str, Any]:
    fitting = [w for w in waiting if request in (None, w["request_id"])]
    if not fitting:
        named = f"The request {request} does not wait" if request else "No request waits"
        raise Failed(f"{named} for an answer; `kandev permission list` shows those that do.")
    if len(fitting) > 1:
        names = ", ".join(str(w["request_id"]) for w in fitting)
        raise Failed(f"{len(fitting)} requests wait for an answer ({names}); name one.")
    return fitting[0]


def _allowing(asked: dict[str, Any]) -> str:
    for kind in ALLOWING:
        for option in asked["options"]:
            if option.get("kind") == kind:
                return str(option["option_id"])
    raise Failed(
        f"No option of request {asked['request_id']} allows it; choose with --option: {_options(asked)}."
    )

"""How people name things: a whole id, a unique beginning or end of it, or a name where things have one.

Not here: what is done with the things.
"""

from collections.abc import Callable, Iterable
from typing import Any

from kandev.cli.client import Client
from kandev.cli.failures import Failed, Refused

TERMINAL = ("COMPLETED", "FAILED", "CANCELLED")
NAMED = 5
"""So many candidates are named in a sentence."""
Thing = dict[str, Any]


def pick(kind: str, text: str, things: Iterable[Thing], *names: str) -> Thing:
    """The one thing that `text` names by id, by one of its members `names`, or by an end of its id.

    Raises Failed when there is none or more than one.
    """
    known = list(things)
    ways: tuple[Callable[[Thing], bool], ...] = (
        lambda thing: str(thing["id"]) == text,
        lambda thing: any(str(thing.get(n, "")) == text for n in names),
        lambda thing: any(str(thing.get(n, "")).casefold() == text.casefold() for n in names),
        lambda thing: _at_an_end(str(thing["id"]), text),
    )
    for way in ways:
        fitting = [thing for thing in known if way(thing)]
        if len(fitting) == 1:
            return fitting[0]
        if fitting:
            ids = ", ".join(str(thing["id"]) for thing in fitting[:NAMED])
            raise Failed(f"{text!r} names {len(fitting)} of the {kind}s ({ids}); say more of the id.")
    raise Failed(f"No {kind} is named {text!r}; look with `kandev {kind} list`.")


def _at_an_end(id: str, text: str) -> bool:
    return bool(text) and (id.startswith(text) or id.endswith(text) or id.partition("_")[2].startswith(text))


def task(client: Client, text: str) -> Thing:
    """The task. Raises Failed."""
    found = _exact(client, "task.get", {"id": text})
    return found or pick("task", text, tasks(client))


def session(client: Client, text: str) -> Thing:
    """The session. Raises Failed."""
    found = _exact(client, "session.get", {"session_id": text})
    return found or pick("session", text, sessions(client))


def session_or_task(client: Client, text: str) -> Thing:
    """A session, or the session of a task that is meant: the primary one if it is not over, else the newest
    that is not, else the primary. Raises Failed."""
    if found := _exact(client, "session.get", {"session_id": text}):
        return found
    chosen = _exact(client, "task.get", {"id": text})
    if chosen is None:
        every = tasks(client)
        fitting = [thing for thing in every if _at_an_end(str(thing["id"]), text)]
        if not fitting:
            return pick("session", text, sessions(client))
        chosen = pick("task", text, fitting)
    return _meant(chosen, of_task(client, chosen))


def _meant(chosen: Thing, found: list[Thing]) -> Thing:
    if not found:
        raise Failed(
            f"The task {chosen['id']} has no session; start one with `kandev session launch {chosen['id']}`."
        )
    primary = [s for s in found if s.get("is_primary")]
    open_ones = [s for s in (*primary, *found) if s.get("state") not in TERMINAL]
    return (*open_ones, *primary, *found)[0]


def tasks(client: Client, **chosen: object) -> list[Thing]:
    """All tasks, archived ones too unless told otherwise."""
    return client.listed("task.list", "tasks", {"include_archived": True, "limit": 1000, **chosen})


def of_task(client: Client, task: Thing) -> list[Thing]:
    """A task's sessions, newest first."""
    return client.listed("task.session.list", "sessions", {"task_id": task["id"]})


def sessions(client: Client, **chosen: object) -> list[Thing]:
    """The sessions of all tasks."""
    return [found for thing in tasks(client, **chosen) for found in of_task(client, thing)]


def workspace(client: Client, text: str | None) -> Thing:
    """The named workspace, else the first one. Raises Failed."""
    known = client.listed("workspace.list", "workspaces")
    if text is not None:
        return pick("workspace", text, known, "name")
    if not known:
        raise Failed("There is no workspace; make one with `kandev workspace create NAME`.")
    return known[0]


def workflow(client: Client, workspace: Thing, text: str | None) -> Thing:
    """The named workflow of a workspace, else its first one. Raises Failed."""
    known = client.listed("workflow.list", "workflows", {"workspace_id": workspace["id"]})
    if text is not None:
        return pick("workflow", text, known, "name")
    if not known:
        raise Failed(f"The workspace {workspace['name']} has no workflow.")
    return known[0]


def profile(client: Client, text: str) -> Thing:
    """A profile by id, name, or the known agent that it starts. Raises Failed."""
    known = client.listed("agent.profile.list", "profiles")
    return pick("profile", text, known, "name", "agent")


def _exact(client: Client, action: str, payload: Thing) -> Thing | None:
    try:
        return client.call(action, payload)
    except Refused as error:
        if error.code == "NOT_FOUND":
            return None
        raise

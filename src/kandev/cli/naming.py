"""How people name things: a whole id, a unique beginning or end of it, or a name where things have one.

Not here: what is done with the things.
"""

from collections.abc import Callable, Iterable
from typing import Any

from kandev.cli.client import Client
from kandev.cli.failures import Failed, Refused

TERMINAL = ("COMPLETED", "FAILED", "CANCELLED")
WORKING = ("STARTING", "RUNNING")
NAMED = 5
"""So many candidates are named in a sentence."""
END_MIN = 4
"""Letters of an id that name it: fewer fit by chance."""
LISTS = {"step": "workflow list", "entry": "queue list"}
"""Where things are listed that have no command of their own."""
Thing = dict[str, Any]
Wish = Callable[[Thing], bool]
"""Which of a task's sessions a command is for."""


class Unknown(Failed):
    """Nothing is named so."""


def pick(kind: str, text: str, things: Iterable[Thing], *names: str) -> Thing:
    """The one thing that `text` names by id, by one of its members `names`, or by an end of its id.

    Raises Unknown when there is none, Failed when there are more than one.
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
            kinds = "entries" if kind == "entry" else f"{kind}s"
            raise Failed(f"{text!r} names {len(fitting)} of the {kinds} ({ids}); say more of the id.")
    raise Unknown(f"No {kind} is named {text!r}; look with `kandev {LISTS.get(kind, f'{kind} list')}`.")


def _at_an_end(id: str, text: str) -> bool:
    ends = id.startswith(text) or id.endswith(text) or id.partition("_")[2].startswith(text)
    return ends and len(text) >= END_MIN


def task(client: Client, text: str) -> Thing:
    """The task. Raises Failed."""
    found = _exact(client, "task.get", {"id": text})
    return found or pick("task", text, tasks(client))


def works(session: Thing) -> bool:
    """A turn of it is under way or comes."""
    return session.get("state") in WORKING


def lives(session: Thing) -> bool:
    """There is something of it that can be stopped."""
    return works(session) or bool(session.get("execution"))


def rests(session: Thing) -> bool:
    """It has no agent, and may be taken up again."""
    return not lives(session)


def has_waiting(session: Thing) -> bool:
    """Messages wait in its queue."""
    return bool((session.get("queue") or {}).get("count"))


def is_held(session: Thing) -> bool:
    """Its queue does not run by itself."""
    return (session.get("queue") or {}).get("auto_run") is False


def asks(session: Thing) -> bool:
    """Its agent waits for a decision."""
    return session.get("waiting_for") == "permission"


def wants_answer(session: Thing) -> bool:
    """A question of its agent is open, whether the agent still waits for the answer or not."""
    return bool(session.get("questions")) or session.get("waiting_for") == "question"


def session_or_task(client: Client, text: str, *wishes: Wish, exact: bool = True) -> Thing:
    """A session, or the one of a task's sessions that is meant.

    The first of `wishes` (default: it works) that any of them fulfils decides; where several fulfil it, they
    have to be named, unless `exact` is False. Of what is left: the primary one if it is not over, else the
    newest that is not, else the primary. Raises Failed.
    """
    if found := _exact(client, "session.get", {"session_id": text}):
        return found
    chosen = _exact(client, "task.get", {"id": text})
    if chosen is None:
        fitting = [thing for thing in tasks(client) if _at_an_end(str(thing["id"]), text)]
        if not fitting:
            return _session_named(client, text)
        chosen = pick("task", text, fitting)
    return _meant(chosen, of_task(client, chosen), wishes or (works,), exact=exact)


def _session_named(client: Client, text: str) -> Thing:
    fitting = [thing for thing in sessions(client) if _at_an_end(str(thing["id"]), text)]
    if not fitting:
        raise Failed(
            f"No session or task is named {text!r}; look with `kandev task list` and `kandev session list`."
        )
    return pick("session", text, fitting)


def _meant(chosen: Thing, found: list[Thing], wishes: Iterable[Wish], *, exact: bool) -> Thing:
    if not found:
        raise Failed(
            f"The task {chosen['id']} has no session; start one with `kandev session launch {chosen['id']}`."
        )
    fulfilling = ([s for s in found if wish(s)] for wish in wishes)
    wished = next(filter(None, fulfilling), [])
    if exact and len(wished) > 1:
        named = ", ".join(f"{s['id']} ({s.get('state')})" for s in wished)
        raise Failed(
            f"The task {chosen['id']} has {len(wished)} sessions that may be meant; name one: {named}."
        )
    among = wished or found
    primary = [s for s in among if s.get("is_primary")]
    open_ones = [s for s in (*primary, *among) if s.get("state") not in TERMINAL]
    return (*open_ones, *primary, *among)[0]


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

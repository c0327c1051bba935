"""Deaths and stalls at named points of the running programs: between a commit and its effect, between the
claim of a prompt and its write, in the middle of taking over.

A point is `module:Class.method/before|after/N/die|stall`: at the Nth call in a process the program kills
itself, or stands still for a moment. Each happens once in a round, whichever process reaches it first: a
marker in the folder says that it did. `plants/sitecustomize.py` arms the programs as they start.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

STALL_S: Final = 0.4
BACKEND: Final = (
    "kandev.runtime.actor:Actor._reconcile",
    "kandev.runtime.actor:Actor._tell",
    "kandev.runtime.keeper:StoreKeeper.commit",
    "kandev.runtime.effects:SessionEffects._start",
    "kandev.runtime.effects:SessionEffects._prompt",
    "kandev.runtime.effects:SessionEffects._cancel",
    "kandev.runtime.effects:SessionEffects._teardown",
    "kandev.runtime.effects:SessionEffects._rest",
    "kandev.runtime.effects:SessionEffects._forget",
    "kandev.runtime.registry:Sessions.recover",
    "kandev.runtime.registry:Sessions._load",
    "kandev.execution.client:Client.create",
    "kandev.execution.client:Client.prompt",
    "kandev.execution.client:Client.stop",
    "kandev.execution.client:Client.delete",
    "kandev.execution.client:Client.answer_permission",
    "kandev.execution.sidecar:Sidecar._spawn",
    "kandev.execution.worktrees:GitWorktrees.prepare",
    "kandev.gateway.hub:Hub.publish",
)
AGENTCTL: Final = (
    "kandev.agentctl.dispatching:Claims.add",
    "kandev.agentctl.dispatching:Dispatching._claim",
    "kandev.agentctl.dispatching:Dispatching.prompt",
    "kandev.agentctl.adapters.acp.adapter:AcpAdapter.prompt",
    "kandev.agentctl.adapters.acp.adapter:AcpAdapter.cancel",
    "kandev.agentctl.turns:Turns.taken",
    "kandev.agentctl.turns:Turns.event",
    "kandev.agentctl.turns:Turns._close",
    "kandev.agentctl.journal:Journal.write",
    "kandev.agentctl.journal:Journal._append",
    "kandev.agentctl.journal:Journal.acknowledge",
    "kandev.agentctl.journal:Journal.drop",
    "kandev.agentctl.instances:Instances._begin",
    "kandev.agentctl.instances:Instances.adopt_journals",
    "kandev.agentctl.instances:Instances._adopt",
    "kandev.agentctl.instances:Instances.delete",
    "kandev.agentctl.instance:Instance._announce",
    "kandev.agentctl.instance:Instance._end_tree",
    "kandev.agentctl.instance:Instance._close",
    "kandev.agentctl.home:Home.publish",
    "kandev.agentctl.home:Home.save_epoch",
    "kandev.agentctl.home:Home.add_tombstone",
    "kandev.agentctl.permissions:Permissions.ask",
    "kandev.agentctl.permissions:Permissions.answer",
    "kandev.agentctl.process:AgentProcess._end",
)
OFTEN: Final = (
    "Actor._reconcile",
    "Actor._tell",
    "StoreKeeper.commit",
    "Hub.publish",
    "Turns.event",
    "Journal.",
)
"""Called for each frame or commit: then N is drawn from more."""


def draw(rng: random.Random) -> str:
    """Some point."""
    name = rng.choice((*BACKEND, *AGENTCTL))
    number = rng.randint(1, 40 if any(word in name for word in OFTEN) else 3)
    return f"{name}/{rng.choice(('before', 'after'))}/{number}/{rng.choice(('die', 'die', 'stall'))}"


def environment(points: tuple[str, ...], folder: Path) -> dict[str, str]:
    """With it the programs are armed. `folder` is there."""
    return {"TORTURE_POINTS": ",".join(points), "TORTURE_MARKERS": str(folder)}


def disarm(points: tuple[str, ...], folder: Path) -> int:
    """From now on none of them is reached; how many had been."""
    return sum(not _first(point, folder) for point in points)


def arm(program: str) -> None:
    """This process, which is one of `program`."""
    folder = Path(os.environ["TORTURE_MARKERS"])
    for point in os.environ["TORTURE_POINTS"].split(","):
        name = point.partition("/")[0]
        if name in (AGENTCTL if program == "agentctl" else BACKEND):
            _arm(point, folder)


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _stall() -> None:
    time.sleep(STALL_S)


ENDS: Final[dict[str, Callable[[], None]]] = {"die": _die, "stall": _stall}


def _arm(point: str, folder: Path) -> None:
    name, when, number, what = point.split("/")
    module, _, path = name.partition(":")
    owner, method = path.split(".")
    holder = getattr(importlib.import_module(module), owner)
    calls = [0]

    def reached() -> None:
        calls[0] += 1
        if calls[0] == int(number) and _first(point, folder):
            ENDS[what]()

    setattr(holder, method, _wrapped(getattr(holder, method), when, reached))


def _wrapped(really: Callable[..., Any], when: str, reached: Callable[[], None]) -> Callable[..., Any]:
    def before() -> None:
        if when == "before":
            reached()

    def after() -> None:
        if when == "after":
            reached()

    if inspect.iscoroutinefunction(really):

        @functools.wraps(really)
        async def awaited(*args: Any, **kwargs: Any) -> Any:
            before()
            found = await really(*args, **kwargs)
            after()
            return found

        return awaited

    @functools.wraps(really)
    def called(*args: Any, **kwargs: Any) -> Any:
        before()
        found = really(*args, **kwargs)
        after()
        return found

    return called


def _first(point: str, folder: Path) -> bool:
    """Whether nobody was here before."""
    try:
        (folder / point.replace("/", "!")).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True

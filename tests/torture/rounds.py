"""One round from its first process to its verdict: load and faults, quiet, evidence, the end, census."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import time
import traceback
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from kandev.agentctl.grouping import folder_of, own_group
from tests.e2e.scenes import turns_over, until_true
from tests.torture import points
from tests.torture.agentlog import read_logs
from tests.torture.census import judge
from tests.torture.census.remains import MOST_DESCRIPTORS, left_over
from tests.torture.evidence import Evidence, quiet_evidence
from tests.torture.faults import Faults
from tests.torture.house import SLEEPY, TIGHT, House, running, send
from tests.torture.ledger import Ledger
from tests.torture.plan import Plan, Size, make
from tests.torture.planted import environment as with_bug
from tests.torture.play import Board, Player, play_tasks
from tests.torture.quiet import restless, settle, stirred

LOAD_S = 240.0
END_S = 60.0
CLOSING_S = 5.0
CUT_OFF = re.compile(
    r"^Traceback (?:.*\n(?!Traceback))*?.*timeout graceful shutdown exceeded\n", re.MULTILINE
)
LAWFUL = ("ASGI callable returned without completing handshake", '"message": "an instance ends: ')
"""uvicorn's remark about a WebSocket that was refused in words while its client went away; what agentctl says
when an agent that was killed takes no input any more."""
BUGS = ('"level": "error"', "ERROR", "Traceback", "never retrieved", "never awaited", "exception was")


@dataclass
class Outcome:
    """How a round went."""

    plan: Plan
    violations: list[str] = field(default_factory=list)
    figures: dict[str, int] = field(default_factory=dict)
    evidence: Evidence | None = None
    ledger: Ledger = field(default_factory=Ledger)


def play(plan: Plan, folder: Path, environment: dict[str, str] | None = None) -> Outcome:
    """A whole round in a loop of its own. `folder` is made anew; `environment` is of the programs."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return asyncio.run(play_round(plan, folder, environment))


Played = tuple[int, list[str], dict[str, int]]
"""Seed, violations, figures."""


def play_and_tidy(seed: int, folder: Path, size: Size, *, keep: bool, bug: str | None = None) -> Played:
    """For a process of its own. The folder of a good round goes, unless it is to be kept."""
    outcome = play(make(seed, size), folder, with_bug(bug) if bug else None)
    if not outcome.violations and not keep:
        shutil.rmtree(folder, ignore_errors=True)
    return seed, outcome.violations, outcome.figures


def by_itself() -> None:
    """A Ctrl-C in the terminal is for the campaign, and never for the programs of a round."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)


async def play_round(plan: Plan, folder: Path, environment: dict[str, str] | None = None) -> Outcome:
    """Never raises for what the product does: that is a violation. Leaves no process behind."""
    markers = folder / "markers"
    markers.mkdir(parents=True)
    settings = {**(TIGHT if plan.tight else {}), **(SLEEPY if plan.sleepy else {})}
    if plan.points:
        settings = {**settings, **with_bug(None), **points.environment(plan.points, markers)}
    house, outcome = House(folder / "home", {**settings, **(environment or {})}), Outcome(plan)
    try:
        await _play(house, plan, outcome, markers)
    except Exception:  # noqa: BLE001 - a round that breaks off is told like any other fault
        outcome.violations.append(f"harness or product: {traceback.format_exc()}")
    finally:
        await _clear_away(house)
    (folder / "plan.txt").write_text(f"{plan}\n\n" + "\n".join(outcome.ledger.happened) + "\n")
    (folder / "violations.txt").write_text("\n".join(outcome.violations) + "\n")
    return outcome


async def _play(house: House, plan: Plan, outcome: Outcome, markers: Path) -> None:
    ledger = outcome.ledger
    board = Board(house, ledger, plan)
    await house.start()
    keeping_up = asyncio.create_task(house.keep_up(lambda code: _died(outcome, code)))
    try:
        await _set_up(board)
        async with asyncio.timeout(LOAD_S), asyncio.TaskGroup() as group:
            for slot, deeds in enumerate(plan.slots):
                group.create_task(Player(board, slot).play(deeds))
            group.create_task(play_tasks(board, plan.tasks))
            faults = Faults(house, ledger, may_die=bool(plan.points))
            group.create_task(faults.carry_out(plan.faults))
        async with asyncio.timeout(LOAD_S):
            await board.insist()
        moving = await settle(board)
        if plan.releases and not moving:
            await board.release()
        ledger.faults["points reached"] = points.disarm(plan.points, markers)
        moving = moving or await settle(board)
        evidence = outcome.evidence = await quiet_evidence(house, ledger)
        while not moving and stirred(evidence, house):
            moving = await settle(board)
            evidence = outcome.evidence = await quiet_evidence(house, ledger)
        outcome.violations += [f"nothing waits without end: {why}" for why in moving]
        keeping_up.cancel()
        await _end(board, plan.ending, evidence)
    finally:
        keeping_up.cancel()
        await asyncio.wait({keeping_up})
        await board.leave()
    evidence.heard = [heard for watcher in board.watchers for heard in watcher.heard]
    _look_behind(house, evidence)
    outcome.violations += judge(evidence)
    outcome.figures = figures(evidence)


async def _set_up(board: Board) -> None:
    """A backend that dies meanwhile has what it had made: the rest is made with the next."""
    while True:
        try:
            await board.set_up()
            return
        except httpx.HTTPError:
            await asyncio.sleep(0.1)
            await board.up()


def _died(outcome: Outcome, code: int) -> None:
    outcome.ledger.happened.append(f"{time.monotonic_ns()} the backend ended with {code}")
    if code != -signal.SIGKILL:
        outcome.violations.append(f"the backend ended by itself, with {code}")


def figures(evidence: Evidence) -> dict[str, int]:
    """What went through it."""
    sent = evidence.ledger.sent.values()
    told = Counter(f"messages answered {a['status']}" for one in sent for a in one.answers)
    refused = Counter(f"messages refused: {code}" for one in sent for code, _ in one.refusals)
    fates = Counter(f"entries {row['state']}" for row in evidence.books.entries)
    ends = Counter(f"turns ended: {row['cause']}" for row in evidence.books.turns)
    return {
        "messages": len(sent),
        "messages unanswered": sum(one.unanswered for one in sent),
        "requests": len(evidence.ledger.asked),
        "turns": len(evidence.books.turns),
        "executions": len(evidence.books.executions),
        "prompts": sum(len(log.prompts) for log in evidence.agents),
        "words of agents": sum(len(log.pieces) for log in evidence.agents),
        "notifications": len(evidence.books.notifications),
        **told,
        **refused,
        **fates,
        **ends,
        **{f"fault: {kind}": count for kind, count in evidence.ledger.faults.items()},
    }


# -- the end ----------------------------------------------------------------------------------------


async def _end(board: Board, ending: str, evidence: Evidence) -> None:
    """End everything, in one of several ways. Afterwards nothing of this home may live."""
    house = board.house
    match ending:
        case "kill and terminate":
            await house.kill()
            await house.start()
        case "stop sessions":
            for session in evidence.books.sessions:
                await board.ask("session.stop", {"session_id": session["id"]})
        case "stop tasks":
            for task in evidence.books.tasks:
                await board.ask("orchestrator.stop", {"task_id": task["id"]})
        case "delete tasks":
            for task in evidence.books.tasks:
                await board.ask("task.delete", {"id": task["id"]})
    if ending in ("stop sessions", "stop tasks", "delete tasks"):
        await _without_agents(house)
        await board.leave()
        evidence.descriptors = await _descriptors(house)
    await _terminate(house)
    evidence.left = running(house.home)
    if not evidence.left and left_over(_files(house)):
        await _live_again(board)
        evidence.left = running(house.home)


async def _terminate(house: House) -> None:
    """The backend is told to end: with it goes everything, for nothing is at work."""
    await house.stop()
    end = time.monotonic() + END_S
    while running(house.home) and time.monotonic() < end:
        await asyncio.sleep(0.05)


async def _live_again(board: Board) -> None:
    """What a kill left on disk is cleared away by the next life of both programs."""
    board.ledger.fault("(another life)")
    await board.house.start()
    task_id = await board.new_task()
    asked = {"task_id": task_id, "prompt": "say good morning"}
    session_id = str((await board.house.call("session.launch", asked))["session_id"])
    async with board.house.watching(session_id) as events:
        await turns_over(events)
    await _terminate(board.house)


def _files(house: House) -> list[str]:
    """Relative to the home."""
    found = (path for path in house.home.rglob("*") if path.is_file())
    return sorted(str(path.relative_to(house.home)) for path in found)


async def _without_agents(house: House) -> None:
    """Until no agent lives and every session knows it."""
    await until_true(lambda: not house.agents(), "the agents are gone")
    await until_true(lambda: not restless(house.home / "kandev.db"), "the ends are committed")


async def _descriptors(house: House) -> dict[str, int]:
    """Of the long-lived programs; a moment is granted for what is just being closed."""
    end = time.monotonic() + CLOSING_S
    while True:
        counts = {**_open("backend", house.backend()), **_open("agentctl", house.agentctl())}
        if all(count <= MOST_DESCRIPTORS[name] for name, count in counts.items()) or time.monotonic() > end:
            return counts
        await asyncio.sleep(0.1)


def _open(program: str, pid: int | None) -> dict[str, int]:
    """Its files and its sockets."""
    targets = []
    for number in Path(f"/proc/{pid}/fd").iterdir() if pid else ():
        with suppress(OSError):
            targets.append(str(number.readlink()))
    sockets = sum(target.startswith("socket:") for target in targets)
    return {program: len(targets) - sockets, f"{program}'s sockets": sockets} if pid else {}


def _look_behind(house: House, evidence: Evidence) -> None:
    """What is there when nothing runs any more."""
    evidence.agents = read_logs(house.agent_logs)
    parent = own_group()
    for row in evidence.books.executions:
        if parent is not None and (folder := folder_of(row["id"], str(house.home), parent)).exists():
            evidence.groups.append(f"{folder} of {row['id']}")
    evidence.files = _files(house)
    for log in ("backend.err", "agentctl.log"):
        evidence.complaints += complaints(house.home / log)


def complaints(log: Path) -> list[str]:
    """Lines that tell of a bug. An ask that was under way when its backend was told to end is none."""
    text = log.read_text(errors="replace") if log.exists() else ""
    for block in CUT_OFF.findall(text):
        text = text.replace(block, "")
    lines = [line for line in text.splitlines() if not any(word in line for word in LAWFUL)]
    return [f"{log.name}: {line[:2000]}" for line in lines if any(word in line for word in BUGS)]


async def _clear_away(house: House) -> None:
    """Whatever is left when a round broke off."""
    for _ in range(100):
        left: list[Any] = running(house.home)
        if not left:
            break
        for one in left:
            send(one.pid, signal.SIGCONT)
            send(one.pid, signal.SIGKILL)
        await asyncio.sleep(0.05)
    if house.process is not None:
        await asyncio.to_thread(house.process.wait)
        if house.process.stdout is not None:
            house.process.stdout.close()
    await house.close()

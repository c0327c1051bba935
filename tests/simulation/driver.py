"""Plays a schedule: its actions, then a calm end, then the verdict.

`play(seed, actions)` is the whole: the same two give the same outcome.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from kandev.core import inputs
from kandev.core.session import TurnRef
from kandev.core.transcript import PermissionAsk, Text
from tests.simulation.actions import Action
from tests.simulation.clients import Clients
from tests.simulation.faults import Armed
from tests.simulation.loop import Domain, SeededLoop, Stuck
from tests.simulation.rig import TASKS, Rig, watched
from tests.simulation.verdict import LATE, judge, restless
from tests.simulation.watch import Violation

QUIET_ROUNDS = 12
ROUND_S = 60.0
IDLE_SLEEP_S = (0.0, 4.0, 12.0)
"""Some schedules' agents never sleep; the others meet a message, a cancel, a crash while they doze."""


@dataclass
class Outcome:
    """How a schedule went. `history`: what happened, with virtual times."""

    violation: Violation | None = None
    history: list[str] = field(default_factory=list)
    steps: int = 0
    virtual_s: float = 0.0
    commits: int = 0
    prompts: int = 0


def play(seed: int, actions: Sequence[Action]) -> Outcome:
    """One schedule, on a loop of its own."""
    loop = SeededLoop(seed)
    outcome = Outcome()
    rig = Rig(seed, IDLE_SLEEP_S[seed % len(IDLE_SLEEP_S)])
    asyncio.set_event_loop(loop)
    loop.set_exception_handler(lambda _, told: rig.watch.violated("no bug", str(told)))
    collecting = gc.isenabled()
    gc.disable()
    try:
        with watched(rig):
            loop.run_until_complete(Player(rig, outcome).run(actions))
    except Violation as violation:
        outcome.violation = violation
    except Stuck as stuck:
        outcome.violation = rig.watch.first or Violation("stuck", str(stuck))
    finally:
        outcome.steps, outcome.virtual_s = loop.steps, loop.time()
        outcome.commits, outcome.prompts = rig.watch.commits, len(rig.world.handed)
        asyncio.set_event_loop(None)
        loop.finish()
        if collecting:
            gc.enable()
    return outcome


class Player:
    """One schedule under way."""

    def __init__(self, rig: Rig, outcome: Outcome) -> None:
        self.rig, self.outcome = rig, outcome
        self.clients = Clients(rig)
        self.clients.log = self.log
        self._broken = asyncio.Event()
        rig.watch.alarm = self._broken.set

    def log(self, line: str) -> None:
        self.outcome.history.append(f"{asyncio.get_running_loop().time():9.2f}  {line}")

    async def run(self, actions: Sequence[Action]) -> None:
        """Raises Violation. Whatever happens, nothing of it goes on afterwards."""
        domain = Domain("schedule")
        with domain.entered():
            playing = asyncio.create_task(self._play(actions))
            broken = asyncio.create_task(self._broken.wait())
        try:
            await asyncio.wait({playing, broken}, return_when=asyncio.FIRST_COMPLETED)
            if self.rig.watch.first is not None:
                raise self.rig.watch.first
            await playing
        finally:
            await domain.end()
            await self.clients.domain.end()
            await self.rig.abandon()

    async def _play(self, actions: Sequence[Action]) -> None:
        await self.rig.start()
        for action in actions:
            await asyncio.sleep(action.pause)
            self.log(f"> {action}")
            done = DO[action.what](self, action)
            if done is not None:
                await done
        await self._settle()
        judge(self.rig)
        await self.rig.close()

    async def _settle(self) -> None:
        """Nothing goes wrong any more, people end what would go on for ever, and all comes to rest."""
        rig = self.rig
        rig.faults.settle()
        rig.world.refuse_launch = None
        self.log("> quiet")
        if rig.backend is None:
            await rig.start()
        for _ in range(QUIET_ROUNDS):
            await asyncio.sleep(ROUND_S)
            if self.clients.asking:
                continue
            why = restless(rig)
            if not why:
                return
            self.log(f"not quiet: {why}")
            for line in why:
                self.clients.cancel(line.split(":")[0])
        rig.watch.violated("comes to rest", str(restless(rig) or [t.get_name() for t in self.clients.asking]))

    # -- what is there ------------------------------------------------------------------------------

    def session(self, which: int) -> str | None:
        """One of the sessions."""
        ids = [str(id) for (id,) in self.rig.rows.execute("SELECT id FROM sessions ORDER BY rowid")]
        return ids[which % len(ids)] if ids else None

    def one(self, query: str, which: int) -> tuple[Any, ...] | None:
        """One of the rows of a query."""
        rows = self.rig.rows.execute(query).fetchall()
        return rows[which % len(rows)] if rows else None


def _message(player: Player, action: Action) -> None:
    session = player.session(action.which)
    if session is not None:
        content = f"say m{action.number}\n{action.text}"
        player.clients.message(session, player.clients.task_of(session), content, f"m{action.number}")


def _peer(player: Player, action: Action) -> None:
    session = player.session(action.which)
    if session is not None:
        content = f"say m{action.number}\n{action.text}"
        interrupts = action.what == "interrupt"
        player.clients.peer(session, content, f"m{action.number}", interrupts=interrupts)


def _send_now(player: Player, action: Action) -> None:
    row = player.one("SELECT session_id, id FROM entries WHERE state IN ('queued', 'claimed')", action.which)
    if row is not None:
        player.clients.send_now(*row)


def _automation(player: Player, action: Action) -> None:
    session = player.session(action.which)
    if session is not None:
        content = f"say m{action.number}\n{action.text}"
        player.clients.automation(session, content, f"m{action.number}", key=f"build {action.which % 2}")


def _edit(player: Player, action: Action) -> None:
    row = player.one("SELECT session_id, id, content FROM entries WHERE state = 'queued'", action.which)
    if row is not None:
        player.clients.edit(*row)


def _ask_a_person(player: Player, action: Action) -> None:
    session = player.session(action.which)
    if session is not None:
        player.clients.ask_a_person(session, f"q{action.number or action.which}", how=action.which)


def _respond(player: Player, action: Action) -> None:
    asked = "SELECT key FROM messages WHERE type = 'clarification_request' ORDER BY rowid DESC LIMIT 2"
    row = player.one(asked, action.which)
    if row is not None:
        words = f"say m{action.number}\n{action.text}"
        player.clients.respond(str(row[0]), words, declines=action.which == 5)


def _again(player: Player, action: Action) -> None:
    row = player.one(
        "SELECT session_id, task_id, content, key FROM entries WHERE key IS NOT NULL", action.which
    )
    if row is not None:
        player.clients.message(*row)


def _launch(player: Player, action: Action) -> None:
    player.clients.launch(TASKS[action.which % len(TASKS)], f"say m{action.number}\n{action.text}")


def _with_session(ask: Callable[[Clients, str, Action], None]) -> Callable[[Player, Action], None]:
    def done(player: Player, action: Action) -> None:
        session = player.session(action.which)
        if session is not None:
            ask(player.clients, session, action)

    return done


def _answer(player: Player, action: Action) -> None:
    row = player.one(
        "SELECT session_id, json_extract(metadata, '$.request_id') FROM messages "
        "WHERE type = 'permission_request' ORDER BY rowid DESC LIMIT 3",
        action.which,
    )
    if row is not None:
        player.clients.answer(*row, how=action.which)


def _remove(player: Player, action: Action) -> None:
    row = player.one("SELECT session_id, id FROM entries WHERE state IN ('queued', 'claimed')", action.which)
    if row is not None:
        player.clients.remove(*row)


def _go_away(player: Player, action: Action) -> None:
    if asking := player.clients.asking:
        asking[action.which % len(asking)].cancel()


def _late_report(player: Player, action: Action) -> None:
    backend = player.rig.backend
    row = player.one(
        "SELECT session_id, execution_id, prompt_generation, own_turn_id FROM turns WHERE state = 'ended'",
        action.which * 7,
    )
    if backend is None or row is None:
        return
    session, execution, generation, own = row
    actor = backend.sessions._actors.get(session)
    if actor is None or (actor.record.value.execution == execution and actor.record.value.turn is None):
        return
    turn = TurnRef(execution, generation, own)
    late: list[inputs.Input] = [
        inputs.Taken(turn),
        inputs.Ended(turn),
        inputs.Refused(turn, LATE),
        inputs.Output(turn, Text("message", LATE)),
        inputs.CancelUnheard(turn, 1),
        inputs.PermissionAsked(turn, PermissionAsk("late", LATE)),
    ]
    if actor.record.value.execution != execution:
        late += [inputs.Gone(execution, True), inputs.Exited(execution), inputs.LaunchFailed(execution, LATE)]
    with backend.domain.entered():
        asyncio.create_task(actor.tell(late[(action.which + len(late)) % len(late)]))  # noqa: RUF006


def _agent_dies(player: Player, action: Action) -> None:
    if living := player.rig.world.living():
        player.rig.world.kill_agent(living[action.which % len(living)].spec.execution)


def _agentctl_dies(player: Player, action: Action) -> None:
    player.rig.world.die(journals_survive=action.which % 2 == 0)


async def _kill(player: Player, action: Action) -> None:
    await player.rig.kill()
    await asyncio.sleep(action.seconds)
    await player.rig.start()


def _store_fault(player: Player, action: Action) -> None:
    player.rig.faults.armed.append(Armed("store", action.text, "", action.seconds))


def _wire_fault(player: Player, action: Action) -> None:
    moment = "after" if action.text == "frame" or (action.which % 2 and action.text != "follow") else "before"
    player.rig.faults.armed.append(Armed("agentctl", action.text, moment, action.seconds))


def _network_down(player: Player, action: Action) -> None:
    player.rig.faults.unreachable_until = asyncio.get_running_loop().time() + action.seconds


def _cancel_refused(player: Player, action: Action) -> None:
    player.rig.faults.refused_cancels = 1 + action.which % 2


def _prompt_refused(player: Player, action: Action) -> None:
    player.rig.faults.refused_prompts = 1 + action.which % 4


def _launches_fail(player: Player, action: Action) -> None:
    player.rig.world.refuse_launch = "no such model" if action.which else None


def _slow_agent(player: Player, action: Action) -> None:
    world = player.rig.world
    slow = (0, 0, 0, action.seconds, action.seconds, action.seconds)
    world.accept_s, world.end_s, world.launch_s = (
        slow[action.which],
        slow[action.which - 1],
        slow[action.which - 2],
    )
    world.survivors = ("4711 sleeper",) if action.which == 5 else ()


DO: dict[str, Callable[[Player, Action], Any]] = {
    "message": _message,
    "again": _again,
    "launch": _launch,
    "cancel": _with_session(lambda clients, session, _: clients.cancel(session)),
    "stop": _with_session(lambda clients, session, action: clients.stop(session, force=action.which > 3)),
    "stop task": lambda player, action: player.clients.stop_task(TASKS[action.which % len(TASKS)]),
    "resume": _with_session(lambda clients, session, _: clients.resume(session)),
    "answer": _answer,
    "remove": _remove,
    "peer": _peer,
    "automation": _automation,
    "edit": _edit,
    "drain": _with_session(lambda clients, session, _: clients.drain(session)),
    "ask a person": _ask_a_person,
    "respond": _respond,
    "interrupt": _peer,
    "send now": _send_now,
    "auto run": _with_session(lambda clients, session, action: clients.auto_run(session, action.which > 1)),
    "reorder": _with_session(lambda clients, session, action: clients.reorder(session, action.which)),
    "clear": _with_session(lambda clients, session, _: clients.clear(session)),
    "delete": _with_session(lambda clients, session, _: clients.delete(session)),
    "wait": lambda player, action: None,
    "go away": _go_away,
    "late report": _late_report,
    "agent dies": _agent_dies,
    "agentctl dies": _agentctl_dies,
    "kill": _kill,
    "store fault": _store_fault,
    "wire fault": _wire_fault,
    "network down": _network_down,
    "cancel refused": _cancel_refused,
    "prompt refused": _prompt_refused,
    "launches fail": _launches_fail,
    "slow agent": _slow_agent,
}

"""A backend around the real rules, in a world that loses, delays, repeats and reorders.

`World` owns the session's value, the wire to the sidecar's model and the books of the judge. `act` is one
step of somebody; `settle` makes the world fair until all is quiet. Nothing here reads the core's tables.
"""

from collections.abc import Callable
from typing import Any

from kandev.core import decide, views
from kandev.core.effects import Timer
from kandev.core.inputs import (
    Allow,
    AskPerson,
    AutoRun,
    Cancel,
    Clear,
    Draft,
    Drain,
    Edit,
    Expired,
    Frame,
    Gone,
    Input,
    Interrupt,
    Looked,
    QuestionLeft,
    Remove,
    Reorder,
    Respond,
    Resume,
    Send,
    SendNow,
    Stop,
)
from kandev.core.session import Answer, Entry, Launch, Outcome, Session, TurnRef
from tests.core.judge import WAITERS, Judge
from tests.core.sidecar import Sidecar

SHORT = ("ask", "cancel", "retry", "idle")
ASKS = 20
HAPPENINGS = 12
ACTS = ASKS + 2 * HAPPENINGS


class World:
    """One session, told everything that can happen."""

    def __init__(self) -> None:
        self.session = Session("s")
        self.sidecar = Sidecar()
        self.judge = Judge(self.sidecar)
        self.wires: list[tuple[str, Any]] = []
        self.log: list[str] = []
        self.past: list[Timer] = []
        """Deadlines that are history: their expiry may still be in the inbox."""
        self.noted: list[TurnRef | None] = [None]
        """What somebody who interrupts has seen, be it long ago."""
        self.n = 0

    # -- the backend ----------------------------------------------------------------------------

    def tell(self, given: Input) -> None:
        before = self.session
        after, notes = decide.decide(before, given)
        self.log.append(f"{given}  =>  {after.launch}/{after.phase}/{after.outcome} {notes}")
        self.session = after
        self.noted.append(views.current_turn(after))
        self.past += [t for t in views.timers(before) - views.timers(after) if t.kind not in WAITERS]
        self.judge.step(before, given, after, notes)

    def ask(self, make: Callable[[str], Input]) -> None:
        self.n += 1
        name = f"a{self.n}"
        given = make(name)
        self.judge.asked[name] = given
        self.tell(given)

    def send(self, by: Any, limit: int = 0, *, interrupt: Interrupt | None = None) -> None:
        self.n += 1
        entry = Entry(f"m{self.n}", by, coalesce="c" if by == "automation" else None)
        draft = Draft("text", entry.id)
        self.ask(lambda a: Send(a, entry, draft, limit, interrupt, patient=by == "automation"))

    def perform(self, which: int) -> None:
        """Put one owed effect on the wire, be it for the first time or again."""
        if due := views.owed(self.session):
            self.wires.append(("to", due[which % len(due)]))

    def crash(self) -> None:
        """The backend dies and starts; what it had sent may still arrive, no answer finds anybody."""
        self.log.append("the backend crashes")
        self.wires = [w for w in self.wires if w[0] == "to"]
        self.judge.forgotten |= self.judge.asked.keys() - self.judge.replies.keys()
        self.session = decide.recovered(self.session)
        self.judge.books(self.session)

    def crash_sidecar(self) -> None:
        self.log.append("the sidecar crashes")
        self.wires = []
        self.sidecar.crash()

    def deliver(self, which: int, *, lost: bool = False) -> bool:
        if not self.wires:
            return False
        way, message = self.wires.pop(which % len(self.wires))
        if lost:
            return True
        if way == "from":
            self._arrives(message)
        elif (answer := self.sidecar.request(message)) is not None:
            self.wires.append(("from", answer))
        return True

    def _arrives(self, report: Input) -> None:
        if isinstance(report, Gone) and report.execution == self.session.execution:
            self.tell(Looked(report.execution))
            while self.read():  # the teardown reads the journal's rest before it says so
                pass
        self.tell(report)

    def read(self, *, again: bool = False) -> bool:
        """The next frame of the journal; or the last one once more."""
        it = self.sidecar.instances.get(self.session.execution)
        if it is None or self.session.launch in (Launch.ABSENT, Launch.STARTING):
            return False
        at = max(0, self.session.seen - again)
        if at >= len(it.journal):
            return False
        self.tell(Frame(it.execution, at + 1, it.journal[at]))
        return True

    def fire(self, which: int) -> None:
        due = sorted(views.timers(self.session), key=repr)
        if which % 4:  # most deadlines are far away
            due = [t for t in due if t.kind in SHORT]
        if due:
            self.tell(Expired(due[which % len(due)]))
        elif self.past:
            late = self.past[which % len(self.past)]
            if late not in views.timers(self.session):
                self.tell(Expired(late))

    # -- somebody's step ------------------------------------------------------------------------

    def act(self, choice: int, arg: int) -> None:
        choice %= ACTS
        if choice < 10:
            self._somebody_asks(choice, arg)
        elif choice < ASKS:
            self._somebody_arranges(choice, arg)
        else:
            self._something_happens((choice - ASKS) % HAPPENINGS, arg)

    def _somebody_asks(self, choice: int, arg: int) -> None:
        match choice:
            case 0 | 1:
                self.send("peer", limit=(0, 3)[arg % 2])
            case 2:
                self.send("person", limit=(0, 2)[arg % 2])
            case 3 | 4:
                seen = self.noted[-1] if arg % 3 else self.noted[arg % len(self.noted)]
                self.send("peer", limit=(0, 4)[arg % 2], interrupt=Interrupt(seen))
            case 5:
                self.ask(lambda a: Cancel(a, "somebody"))
            case 6:
                outcome = Outcome.COMPLETED if arg % 3 == 2 else Outcome.CANCELLED
                self.ask(lambda a: Stop(a, outcome))
            case 7:
                self.ask(Resume)
            case 8:
                known = [*self.session.permissions]
                request = known[arg % len(known)].request if known else "none"
                self.ask(lambda a: Allow(a, request, Answer("allow")))
            case _:
                self._repeats(arg)

    def _somebody_arranges(self, choice: int, arg: int) -> None:
        """The queue, and questions."""
        s = self.session
        ids = [e.id for e in (*s.queue, *views.in_turn(s))] or ["none"]
        one = ids[arg % len(ids)]
        waiting = tuple(e.id for e in s.queue)
        match choice:
            case 10:
                self.ask(lambda a: Remove(a, one))
            case 11:
                self.ask(lambda a: SendNow(a, one))
            case 12:
                self.ask(lambda a: AutoRun(a, arg % 3 != 0))
            case 13:
                order = (*waiting[arg % 3 :], *waiting[: arg % 3])
                self.ask(lambda a: Reorder(a, order if arg % 5 else waiting[1:]))
            case 14:
                self.ask(lambda a: Edit(a, one, "other words") if arg % 4 else Clear(a))
            case 15:
                self.ask(Drain)
            case 16:
                self.send("automation", limit=3)
            case 17:
                self._agent_asks(arg)
            case _:
                self._answers(arg)

    def _agent_asks(self, arg: int) -> None:
        """By a tool call of its turn; or the call is given up."""
        at_work = [it for it in self.sidecar.live if it.turn is not None]
        if not at_work or at_work[0].execution != self.session.execution:
            return
        open_ones = [q for q, served in at_work[0].calls.items() if not served]
        if open_ones and arg % 3 == 0:
            del at_work[0].calls[open_ones[0]]
            self.tell(QuestionLeft(open_ones[0]))
            return
        question = f"q{self.n}"
        before = self.session.questions
        self.ask(lambda a: AskPerson(a, question))
        if self.session.questions != before:
            at_work[0].calls[question] = False

    def _answers(self, arg: int) -> None:
        ids = [q.id for q in self.session.questions] or ["none"]
        self.n += 1
        entry = Entry(f"m{self.n}", "answer") if arg % 4 else None
        draft = Draft("text", entry.id) if entry else None
        self.ask(lambda a: Respond(a, ids[arg % len(ids)], entry, draft))

    def _repeats(self, arg: int) -> None:
        """Somebody sends an entry again that is already here."""
        if known := [*self.session.queue, *views.in_turn(self.session)]:
            entry = Entry(known[arg % len(known)].id, known[arg % len(known)].by)
            self.ask(lambda a: Send(a, entry, Draft("text", entry.id)))

    def _something_happens(self, choice: int, arg: int) -> None:
        match choice:
            case 0 | 1 | 2:
                self.perform(arg)
            case 3 | 4:
                self.deliver(arg)
            case 5:
                self.deliver(arg, lost=True)
            case 6 | 7:
                self.sidecar.act(arg)
            case 8:
                self.read(again=arg % 5 == 0)
            case 9:
                self.read()
            case 10:
                self.fire(arg)
            case _:
                self._disaster(arg)

    def _disaster(self, arg: int) -> None:
        match arg % 6:
            case 0:
                self.crash_sidecar()
            case 1 | 2:
                self.crash()
            case _:
                self.fire(arg)

    # -- a fair world ---------------------------------------------------------------------------

    def calm(self) -> None:
        """Everything owed is done once, everything sent arrives, everything said is read."""
        for which in range(len(views.owed(self.session))):
            self.perform(which)
        while self.deliver(0):
            pass
        while self.read():
            pass

    def settle(self) -> None:
        """Until all is quiet; then the judge looks once more."""
        self.sidecar.fair = True
        for _ in range(300):
            before = (self.session, len(self.sidecar.heard))
            self.calm()
            for it in self.sidecar.live:
                if it.turn is not None:
                    self.sidecar.end(it, "end_turn")
            self.calm()
            if before != (self.session, len(self.sidecar.heard)):
                continue
            due = [t for t in views.timers(self.session) if t.kind != "idle"]
            due.sort(key=lambda t: (t.kind in WAITERS, repr(t)))
            if not due:
                break
            self.tell(Expired(due[0]))
        self.judge.quiet(self.session)

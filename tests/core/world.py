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
    Cancel,
    Draft,
    Expired,
    Frame,
    Gone,
    Input,
    Looked,
    Remove,
    Resume,
    Send,
    Stop,
)
from kandev.core.session import Answer, Entry, Launch, Outcome, Session
from tests.core.judge import WAITERS, Judge
from tests.core.sidecar import Sidecar

SHORT = ("ask", "cancel", "retry", "idle")
ACTS = 24
ASKS = 12


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
        self.n = 0

    # -- the backend ----------------------------------------------------------------------------

    def tell(self, given: Input) -> None:
        before = self.session
        after, notes = decide.decide(before, given)
        self.log.append(f"{given}  =>  {after.launch}/{after.phase}/{after.outcome} {notes}")
        self.session = after
        self.past += [t for t in views.timers(before) - views.timers(after) if t.kind not in WAITERS]
        self.judge.step(before, given, after, notes)

    def ask(self, make: Callable[[str], Input]) -> None:
        self.n += 1
        name = f"a{self.n}"
        given = make(name)
        self.judge.asked[name] = given
        self.tell(given)

    def send(self, by: Any, limit: int = 0) -> None:
        self.n += 1
        entry = Entry(f"m{self.n}", by)
        self.ask(lambda a: Send(a, entry, Draft("text", entry.id), limit))

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
        if choice % ACTS < ASKS:
            self._somebody_asks(choice % ACTS, arg)
        else:
            self._something_happens(choice % ACTS, arg)

    def _somebody_asks(self, choice: int, arg: int) -> None:
        s = self.session
        match choice:
            case 0 | 1:
                self.send("peer", limit=(0, 3)[arg % 2])
            case 2 | 3:
                self.send("person", limit=(0, 2)[arg % 2])
            case 4 | 5:
                self.ask(Cancel)
            case 6:
                outcome = Outcome.COMPLETED if arg % 3 == 2 else Outcome.CANCELLED
                self.ask(lambda a: Stop(a, outcome))
            case 7 | 8:
                self.ask(Resume)
            case 9:
                ids = [e.id for e in (*s.queue, *views.in_turn(s))] or ["none"]
                self.ask(lambda a: Remove(a, ids[arg % len(ids)]))
            case 10:
                known = [*s.permissions]
                request = known[arg % len(known)].request if known else "none"
                self.ask(lambda a: Allow(a, request, Answer("allow")))
            case _:
                self._repeats(arg)

    def _repeats(self, arg: int) -> None:
        """Somebody sends an entry again that is already here."""
        if known := [*self.session.queue, *views.in_turn(self.session)]:
            entry = Entry(known[arg % len(known)].id, known[arg % len(known)].by)
            self.ask(lambda a: Send(a, entry, Draft("text", entry.id)))

    def _something_happens(self, choice: int, arg: int) -> None:
        match choice:
            case 12 | 13 | 14:
                self.perform(arg)
            case 15 | 16:
                self.deliver(arg)
            case 17:
                self.deliver(arg, lost=True)
            case 18 | 19:
                self.sidecar.act(arg)
            case 20:
                self.read(again=arg % 5 == 0)
            case 21:
                self.read()
            case 22:
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

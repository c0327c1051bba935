"""Kinds of faults that users of comparable systems ran into, and what Kandev does in their place.

Each stands here as a symptom and our behaviour. A test that would have caught the kind names it with
`@pytest.mark.field("A01", …)`. `tests/manifest_plugin.py` fails a full run in which a report that applies has
no test, and any run in which a test names a report that is unknown or does not apply yet. One that does not
apply yet says which step brings what it is about. `docs/field-reports.md` is made from this list.

Not here: promises of our own (`requirements`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

STEPS: Final = frozenset({"coordinator stop", "user interface", "retention", "service units"})
"""What is to come, by name."""


@dataclass(frozen=True)
class Report:
    """One kind. `step` is None when it applies today, else what has to be built first; `why` says so."""

    id: str
    symptom: str
    behaviour: str
    step: str | None = None
    why: str | None = None


SECTIONS: Final[dict[str, str]] = {
    "Stop does not stop, or says that it did": """
A01 A stop clears the task while what the agent started runs on for minutes, and starts more.
    The whole tree is owned; a process counts as ended only when a look finds nothing of it.
A03 An interrupt of the program leaves the child of a running tool alive.
    A signal reaches everything that belongs to an execution, and tests look for leftovers.
A05 The client shows "stopped" at once, and the agent goes on working for minutes.
    The state is the server's word, and seconds later no process is left.
A07 Model calls go on after an acknowledged stop, and a session that was taken over refuses the stop.
    After the answer the agent is asked for nothing more; every state that is not over can be stopped.
A09 A stop ends the model's answer, and the session stays blocked until a tool's own long time limit.
    A cancel bounds the tool too: the turn settles within our limit, and the tool's process is gone.
A11 Neither the key nor the button for stopping has any effect for a long time.
    A stop is bounded, what is under way can be seen, and force shortens it.
A13 A helper's permission request reaches no client, the turn never ends, and a cancel says all is well.
    Open requests are the agent's own list; a cancel without a live turn settles the session and says so.
A15 A cancel timed out, the old agent still works, and a new turn starts beside it.
    One turn at a time: the process that did not obey is gone before another one gets a prompt.
A17 Before a turn has an id a cancel says "settled", and the next message meets "already running".
    What is about to begin can be cancelled in every phase, and the next message is taken.
A19 A cancel waits for the agent without a limit, however often it is asked for.
    Every wait for an agent has a deadline, and everybody who asked is answered.
A21 A cancel of a turn that has just ended is never answered.
    It is answered at once; one that was under way is answered by the natural end.
A23 The state says "cancelled", the request named an old turn and was refused, and the real turn runs on.
    A cancel aims at the turn that is current; a refused one is told to whoever asked.
A25 A turn that was given up for a new message runs on unseen, and its requests fail.
    A turn that is being cancelled is shown until its end, and the message waits behind it.
A27 A stop is ignored while a permission request is open.
    A stop and a cancel work while the agent waits for a decision, and close the request.
A29 A session is "stopping" for ever, and another stop is refused.
    A stop may be repeated with force while a process is being ended, and hurries it.
A31 A first start that failed leaves a process that no stop can see.
    A failed start is torn down, and a stop reaches processes whatever the session's state is.
A33 Interrupting a parent leaves its helpers running.
    A stop offers the children too, and lists those that are left.
    Later, coordinator stop: a task's children are stopped by their parent's tool call.
A35 A stop right behind the message is lost, and the whole prompt is carried out.
    A stop or cancel during the set-up is kept and applied.
A37 The stop button vanishes during a long tool call.
    The control follows the server's state.
    Later, user interface: there is no button yet.
A39 The hint names a key that does nothing while messages wait.
    The key that is shown always does what it says.
    Later, user interface: there are no keys yet.
A41 A stop before the first answer deletes the new session and its prompt.
    A session and its first message are stored before anything starts.
A43 "Stopped by the user" is shown, and twenty more tool calls follow.
    Nothing that an agent does behind the answer to a stop is done, or shown.
A45 Stop does nothing after a client came back to a session.
    Control does not depend on which client or which backend began the session.
A47 One of several ways to stop has no effect, or another effect than the others.
    Every way to end a session goes the same way, down to the last process.
""",
    "Races around cancel": """
B01 A stop waits for a guard that is held by somebody who waits for the agent.
    Nothing is held while an agent is waited for; a stop is answered whatever it does.
B03 Two locks of one session are taken in opposite order.
    What decides about a session takes no locks at all.
B05 A late "ready" of an old turn completes the one that replaced it.
    Reports carry the identity of their turn; what is not current changes nothing.
B07 The turn that replaces another dies from the cancel that was meant for its predecessor.
    A cancel belongs to one turn: it is not written after that turn's end.
B09 A cancel races the natural end, and the task's state is left behind.
    Turn, session and task are settled in one transaction, whoever was first.
B11 After an early cancel the agent's answer is mistaken for something else, and the prompt never ends.
    A cancelled prompt that is never answered is given up at our own deadline.
B13 A cancelled turn ends a second time when the next prompt begins.
    A prompt has one end; another one under the same id is ignored.
B15 Every turn ends as "cancelled", and the client throws its content away.
    The reason of an end never discards what was said before it.
B17 A cancel in an awkward moment comes back as an error.
    When we asked for the end, an error is a cancelled turn.
B19 A cancel during the set-up finds nothing to cancel, and the prompt is sent afterwards.
    It keeps the prompt back, and voids a copy that comes later.
B21 A cancel that nobody waited for lands on the next prompt.
    No prompt is written before the end of the turn, and of the cancel that was written for it.
B23 Two callers send two cancels, and the second one hits the next turn.
    A turn has one cancel, shared by everybody who asks for it.
B25 A late report of the old turn sets the new one to idle.
    Reports name their turn.
B27 A turn begins after the stop was asked for.
    The stop's intent outlives any id: no turn begins or is taken up under it.
B29 A guard per session lets several through together.
    One session has one actor, and the actor decides one thing at a time.
B31 A message that arrives in the last moment of a turn waits for the next send.
    Whatever order they come in, a message behind a turn runs.
B33 A cancel during the preparation is dropped, and its dialogs stay open.
    Open requests of a turn are closed with the cancel, new ones are answered at once.
B35 A polite stop leaves the agent waiting for the answer to a permission request.
    It is answered as cancelled first.
B37 An approval that comes late restarts work after a stop.
    A decision counts for the very request that was shown, and for no other process or turn.
B39 "Interrupted" is shown as the user's doing though nobody cancelled.
    The cause is who asked; if nobody did, it was the agent.
B41 An agent was killed by the system, and its prompt waits for ever.
    The end of a process settles everything that waits for it.
B43 What is called off while it still waits gives no event.
    Whatever is called off before it began is told.
B45 A decision from an old look ends work that was accepted since.
    What was seen is looked at again at the moment of the act.
B47 Rejecting one edit ends the whole turn as cancelled.
    A rejection is no cancel: the agent hears it and goes on.
B49 A cancel does not reach work in the background, and other ends look like cancels.
    A turn that the agent began by itself is cancelled like any other, and causes are kept apart.
B51 A cancel while turns wait or are initialised is not seen, and prompts that nobody wants start.
    A cancel holds everything that exists at that moment, in whatever phase.
""",
    "Messages: lost, doubled, stuck, out of order": """
C01 A message is called a failure after a time limit, yet it is stored and nobody is woken for it.
    It is answered behind its commit, a repeat with the same key is the same message, and somebody drains it.
C03 A message that comes back to the queue changes the order.
    It returns to its old place.
C05 A forced stop starts the next message.
    Nothing starts behind a stop.
C07 A message that waits for another try is never delivered after a resume.
    Every way into idleness drains, a new start included.
C09 A new start of the agent failed, the session stays busy and refuses every message.
    A failed start is settled, messages wait in the queue, and tries have pauses and an end.
C11 A second trigger delivers a message twice.
    A message is claimed before it is sent, and a claim has one answer.
C13 Clearing up deletes the address of a live agent, and its messages wait for ever.
    A live receiver is never cleared away.
    Later, retention: nothing is cleared away by itself yet.
C15 A remembered "idle" makes a retry say everything again to an agent at work.
    What may have been delivered is never sent again by itself.
C17 Mail cancels the receiver's running tool.
    Delivery waits for the turn's end unless a cancel is asked for.
C19 Messages are ignored by an idle session.
    An idle session is woken by a message.
C21 A message counts as read, and was never seen by the agent.
    It is delivered only when the agent has taken it.
C23 Messages are delivered only at the end of a long turn.
    Its sender hears that it waits, and may interrupt: ACP cannot hand it over between tools.
C25 "Pause after this" is not seen.
    What waits is known to wait until it is delivered: after this turn, or now by an interrupt.
C27 Every waiting message interrupts once more.
    An interrupt delivers the one that was chosen, or all.
C29 Waiting messages are dropped by a time limit, a cancel or a stop.
    They wait, parked where a person ended the turn.
C31 The same message is delivered again by later drains.
    A key stands for one message for good.
C33 After a stop waiting messages can be neither removed nor known as sent.
    Every one can be removed, or says what became of it.
C35 On a stop the waiting message is sent, and its turn is hidden.
    Nothing is sent behind a stop.
C37 A stop leaves the mark "running" behind, and every later message waits for ever.
    Every way out of a turn leaves the session free for the next one.
C39 Messages that were shown vanish.
    A message is stored before it is answered.
C41 A message to a busy session is dropped.
    It is queued, and the sender is told so.
C43 A new message overtakes those that wait.
    It joins the tail; only a person who speaks to an idle session is heard at once.
C45 A refused correction starts a second turn beside the running one.
    A cancel that is refused leaves the turn as it is, and the correction waits for its end.
C47 A correction that was taken is shown as failed.
    Its time limit ends with its acceptance.
C49 Messages that were queued during an unusual turn are never released.
    The drain does not depend on how a turn began.
C51 A delegated turn that a person's message cut short is a failure for who delegated it.
    It says what replaced it.
C53 A notice says "finished" although the next message follows at once.
    Between two queued turns a session is never idle.
C55 The receiver answered, and the message still counts as waiting.
    Whatever shows that the agent has the prompt delivers its messages.
C57 A control opens a second connection beside the one that owns the session.
    Everything about a session goes through its one owner.
""",
    "Restart, resume, stuck or false state": """
D01 After a restart a session is running for ever, its end lost, and a stop finds nothing.
    The next backend takes the turn over, or settles it and says so.
D03 A stall is noticed again and again, and nothing can be done about it.
    Silence is said, and cancel and stop work on a silent agent.
D05 A resume kills a live agent.
    A resume of what lives changes nothing.
D07 A caller that goes away, or a restart, leaves a launch that is starting for ever.
    Work belongs to no request, and a start has a deadline.
D09 After the host died in the middle of a turn nothing helps: running, busy, refused.
    A state without a live owner is settled, and the next message runs.
D11 The server of the agents restarted, and turns stay busy without a word.
    They are settled with the reason, and nothing is tried again in silence.
D13 A hung agent ignores the cancel, blocks the queue, and its replacement hears the old one's events.
    The process is replaced, the old one is not listened to any more, then the queue goes on.
D15 A killed program leaves its agents, and the next one starts others on the same conversations.
    What an earlier one left is ended or taken over before anything resumes.
D17 A new client makes the server start a second process for a live session.
    Only the session's owner starts processes; a repeat finds the first.
D19 A process is started beside the old one because looking for it failed.
    Nothing starts beside what is not proven gone, and a look that fails proves nothing.
D21 A service manager kills the agents with the backend, and sessions look crashed.
    agentctl lives outside the backend's service, and a unit file says so.
    Later, service units: no unit file is delivered yet.
D23 A watchdog ends a healthy program because of an old reading.
    It looks again at the moment of the act.
D25 A number that was given to another process is signalled.
    Start time and number are one identity.
D27 A session at work is cleaned up as idle.
    Only a session with nothing to do and nothing said is idle.
D29 A stopped agent is started again by somebody else's event, or its work is thrown away.
    Words, worktree and queue stay, and only a person's resume starts it again.
D31 Cancelling a child cuts its link to its parent.
    Cancel and stop leave the tree of tasks alone.
D33 After a restart a parent does not take up its child.
    What a tool answers names the next step.
D35 Helpers that are over count against the limit.
    A limit counts what waits or lives; nothing that is over is counted.
D37 A tool that is documented is missing from the list.
    The list of tools is held to the documentation.
D39 A blocked task is started again and again.
    Blocked and stopped are fences for whatever starts tasks.
D41 After a restart nothing is started, and nobody says why.
    "Why" is answered in every state in which something waits.
D43 A session recovers only when somebody opens it, and a lost write brings old things back.
    Recovery needs no visitor, and a row has one writer.
D45 Children of a task are not taken up after a restart.
    Every session is recovered, a child's like its parent's.
D47 Taking up a conversation that is unknown succeeds, and the next turn does nothing.
    A resume is believed when its effect is seen; an empty conversation counts as lost.
D49 A start that failed leaves half a session behind that cannot be cleared away.
    What it had made is gone; the session says why, and keeps its message.
""",
    "Processes, worktrees, resources": """
E01 Agents and their helpers pile up on a machine.
    A stop works after a restart too, from what is stored about the process.
E03 Buffers of commands grow without a limit, and things that were deleted stay in memory.
    Buffers have a bound, and a deleted session leaves nothing in the program.
E05 A sweep forgets the processes that it could not end.
    A process that cannot be ended stays on record, and is tried again, until its end is seen.
E07 A stop says "exit 0" without a look.
    The exit code is the system's.
E09 After a crash children have other parents, and a walk of the tree misses them.
    They are found by their mark as well.
E11 The end of the program leaves its helpers.
    Ending ends all of them, and a start first ends what an earlier one left.
E13 Adapter and agent stay when the session is over.
    The end of a session ends both, whatever ended it.
E15 A clean-up by the look of a command line ends another, live process.
    Only the mark of this home, execution and run counts; whatever lacks it is left alone.
E17 A grandchild in a process group of its own survives.
    Groups, sessions and parents may change: mark, descent and control group find it.
E19 Servers that agents started run on under finished tasks.
    Each execution has a scope of its own, which is empty in the end.
E21 A timer is never set because one request never settles.
    Every timer runs by itself.
E23 Some way out of a process forgets its children.
    There is one teardown, for every way out.
E25 The end of a program is a success though only its first process is gone.
    The tree is ended, and looked for.
E27 A clean-up removes a worktree with work in it.
    Work that no branch keeps is never removed without force.
E29 A worktree is made anew by force, and changes are lost.
    What is found stays as it is.
E31 A worktree is given to two owners, or removed while somebody works in it.
    It belongs to its task, and goes only when the task's sessions are gone.
E33 A deletion fails because of untracked files.
    It succeeds, keeps them, and says where and what to do.
""",
}


def _parse(block: str) -> Iterator[Report]:
    told: list[list[str]] = []
    for line in block.strip().splitlines():
        if line.startswith(" "):
            told[-1].append(line.strip())
        else:
            told.append(line.split(" ", 1))
    for id, symptom, behaviour, *later in told:
        step, _, why = later[0].removeprefix("Later, ").partition(": ") if later else ("", "", "")
        yield Report(id, symptom, behaviour, step or None, why or None)


def reports_of(section: str) -> tuple[Report, ...]:
    """Those of one section, in order."""
    return tuple(_parse(SECTIONS[section]))


REPORTS: Final[tuple[Report, ...]] = tuple(report for section in SECTIONS for report in reports_of(section))

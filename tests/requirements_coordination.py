"""Promises of the manifest about agents that ask something of other agents' sessions: messages, interrupts, queues.

Part of `tests/requirements.py`.
"""

from __future__ import annotations

RACES = """
RACE-I1: T runs, the agent obeys: P is the first message of a new turn, no line, no REVIEW.
RACE-I2: The agent ignores the cancel: process replaced, P delivered to the new one.
RACE-I3: The cancel fails, agent alive: T goes on, P queued.
RACE-I4: T ends by itself just before: P dispatched, no cancel sent.
RACE-I5: T ends and the workflow starts another turn first: it is untouched, P queued.
RACE-I6: A person's cancel is under way: P queued, parked.
RACE-I7: Clarification recovery comes first: its turn is untouched.
RACE-I8: An accepted clarification retry is interrupted.
RACE-I9a: Two interrupts that noted the same turn go out as one prompt.
RACE-I9b: The second noted the first's turn and replaces it.
RACE-I10a: A drain comes while the interrupt is decided first.
RACE-I10b: The drain came first.
RACE-I11: Queue at its limit: nothing inserted, nothing cancelled.
RACE-I12: Archived or stopped between lookup and insert.
RACE-I13: A ready of T after P's turn has started is dropped.
RACE-I14: The stream breaks during the cancel.
RACE-I15: A stop arrives while the interrupt waits.
RACE-I16: The child is starting.
RACE-I17: A person cancels while the interrupt's cancel is under way.
TURN-open-question: An open question is resolved as cancelled, then the turn is cancelled.
TURN-silent-joined: A person's cancel that joins a silent one makes it a person's cancel.
TURN-silent: A silent cancel leaves no line, runs no step, and gives no REVIEW.
"""

QUESTIONS = """
ACT-clarification.respond: Answers a question.
NOTE-session.clarification_requested: Published when an agent asks a question.
"""

HOLES = """
HOLE-1: A refused message is tried again after a pause, and after three more refusals its queue is parked with the reason.
HOLE-2: A report may come twice and in any order, and one about what comes later says the earlier too.
HOLE-3: A person's cancel outranks an interrupt that waits: its message is queued and parked.
HOLE-4: Interrupts that wait for the same end go out together, in order, as one prompt.
HOLE-5: After a cancel an interrupt is heard at once, and what is parked stays parked.
HOLE-6: A turn that fails parks the queue; its messages are not spent one by one.
HOLE-7: Only what agentctl says is a refusal; without an answer it is asked about the same dispatch.
HOLE-8: A message may be taken out while the turn that it interrupts is being ended.
HOLE-9: A refusal, and the word that a dispatch never came, hold for every copy that comes later.
HOLE-10: A start that its end has overtaken leaves no process.
HOLE-11: An execution that agentctl does not know has ended; its prompt was not refused.
HOLE-12: A stream of another journal is never taken for the one that was followed.
HOLE-13: What was stored before a crash is not stored again when it is sent again, and nothing is left out.
HOLE-14: A backend that was replaced can neither start, prompt, cancel nor end anything.
HOLE-15: What an agent said before its process ended counts before that end.
HOLE-16: A cancel that comes before its prompt makes the prompt void.
HOLE-17: A cancel is not written after its turn's end, and the next prompt keeps a distance to one that was.
HOLE-18: A permission asked in a turn that is ended, or has ended, is answered by agentctl itself.
HOLE-19: A late failure of an earlier attempt to cancel does not touch a later one.
HOLE-20: A session that would start again by itself is stopped, and what would have started it is gone.
HOLE-21: A message on its way at a stop has one fate, known with the end of the process; a resume waits for that.
HOLE-22: An answer that was given never vanishes: it reached its tool call, is the next prompt, or is said to be unknown.
HOLE-23: A turn that an agent began by itself has an identity and an end of its own, and a cancel hits no other.
HOLE-24: Whoever waits hears "queued" as soon as their message is not promised the next turn any more.
HOLE-25: A session that is resumed or started anew before its turn is settled shows only changes of state that are allowed.
HOLE-26: No completed session has a queue that nobody drains: completing parks, releasing opens it again.
HOLE-27: Beside a process that is not proven gone nothing starts, its turn is closed as unknown, and a stop still works.
HOLE-28: A starting session can be interrupted and cancelled: its coming turn is what is meant.
HOLE-29: Whether a prompt may go out is decided by what the session does, not by the state that it shows.
HOLE-30: No prompt leaves behind the commit of a stop, and asks that come together are committed one by one.
HOLE-31: A task is never in REVIEW while one of its sessions works, in whatever order turns end and begin.
HOLE-32: Two sessions that complete their turns in one step move the card once.
HOLE-34: An idempotency key belongs to a sender and a task, whichever session the task speaks with.
SWEEP: A session with something to do and nobody who does it is found, counted and drained, whatever others are like.
"""

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

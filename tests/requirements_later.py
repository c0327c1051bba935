"""Promises of the manifest that are not built yet, by the number of the step that builds them.

This file only shrinks: a requirement that gets built moves to `BUILT` in `tests/requirements.py`, with its test;
a test that proves an id of this file fails the run. Where a part works today, that part has a built requirement of
its own, and the rest stays here: the rows RACE-S speak of the coordinator's stop, what holds of any stop of a session
is STOP-….
Not here: anything that works today.
"""

from __future__ import annotations

LATER: dict[tuple[int, str], str] = {
    (4, "contract §2"): """
ACT-message.queue.add: Adds an entry.
ACT-message.queue.update: Changes a waiting entry.
ACT-message.queue.clear: Empties the queue.
ACT-message.queue.reorder: Orders the queue.
ACT-message.queue.send_now: Sends one entry at once.
ACT-message.queue.drain: Runs the queue.
ACT-message.queue.auto_run.set: Switches auto-run.
ACT-clarification.respond: Answers a question.
NOTE-session.clarification_requested: Published when an agent asks a question.
CTL-mcp: The instance's MCP server is tunnelled to the backend, and a stdio bridge exists.
""",
    (4, "turn control: race matrix"): """
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
""",
    (4, "contract §4"): """
MCP-task-mode: Each session's agent gets one server named kandev whose identity is fixed by its stream.
MCP-closed-schemas: Unknown, missing or mistyped arguments are tool errors that name the argument.
MCP-message-task: message_task_kandev answers queued, sent or started.
MCP-context-block: The first prompt carries the context block, in step with schemas and documentation.
""",
    (5, "coordinator stop"): """
MCP-stop-task: stop_task_kandev answers stopped or not_running, for direct children only.
RACE-S1: Child running.
RACE-S2: Child waiting, execution alive.
RACE-S3: Child waiting or created, no execution and nothing that would start one.
RACE-S3b: Child between a refused prompt and its retry, or asleep with a question.
RACE-S4: Two sessions, one write fails.
RACE-S5: Ready waits behind the stop.
RACE-S6: Stop waits behind a ready that starts the next step.
RACE-S7: Stop during a person's cancel of a deaf agent.
RACE-S8: Stop after an entry was claimed.
RACE-S9: The process dies between commit and teardown.
RACE-S10: A session that comes after its inspection escapes.
RACE-S10b: Child starting, launch under way.
RACE-S11: The caller goes away right after the answer.
RACE-S12: The child's children are untouched.
RACE-S13: Teardown hangs.
STOP-callers: Each other way to end sessions keeps its reason, force and task state.
""",
    (6, "cancel: frontend"): """
UI-cancel-button: A stop button is visible while the agent runs and asks agent.cancel.
UI-cancel-loading: It shows a loading state during the cancel and is disabled without an active turn.
UI-cancel-event: On the event the spinner stops, "cancelled" shows, and input is enabled again.
UI-cancel-e2e: The flow of the cancel button in a browser, at desktop and phone width.
""",
    (7, "cancel: Codex"): """
CODEX-frame: turn/interrupt is a request with an id, threadId and turnId, without the jsonrpc member.
CODEX-ids: threadId comes from thread/start, turnId from turn/start.
CODEX-answer: The interrupt's response is awaited, and turn/completed ends the turn as cancelled.
CODEX-latched: An interrupt before turn/started is latched.
CODEX-real: A real Codex is started, prompted, cancelled in mid-command and prompted again.
MOCK-codex: kandev mock-agent --protocol codex speaks the app-server protocol.
""",
}

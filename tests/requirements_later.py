"""Promises of the manifest that are not built yet, by the number of the step that builds them.

This file only shrinks: a requirement that gets built moves to `BUILT` in `tests/requirements.py`, with its test;
a test that proves an id of this file fails the run. Where a part works today, that part has a built requirement of
its own, and the rest stays here: the rows RACE-S speak of the coordinator's stop, what holds of any stop of a session
is STOP-….
Not here: anything that works today.
"""

from __future__ import annotations

LATER: dict[tuple[int, str], str] = {
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

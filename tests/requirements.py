"""The manifest: every behaviour that Kandev promises, with an id and the place that demands it.

A test names the ids it proves with `@pytest.mark.proves("CANCEL-no-active-turn", …)`. `tests/manifest_plugin.py`
fails a full run in which a built requirement has no test, and any run in which a test names an id that is unknown
or not built yet. What is promised but not built yet stands in `tests/requirements_later.py` with the number of the
step that builds it.

Not here: how a requirement is proven. Sources: "cancel" is the document on cancelling a turn, "contract" the
list of commands, actions and endpoints, "turn control" the rules of the session.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.requirements_coordination import HOLES, QUESTIONS, RACES
from tests.requirements_later import LATER
from tests.requirements_mcp import MCP
from tests.requirements_survival import SURVIVAL


@dataclass(frozen=True)
class Requirement:
    """One promise. `issue` is None when it is built, else the number of the step that will build it."""

    id: str
    source: str
    text: str
    issue: int | None = None


BUILT: dict[str, str] = {
    "survival": SURVIVAL,
    "turn control: interrupts": RACES,
    "turn control: holes of earlier drafts": HOLES,
    "contract §2: questions": QUESTIONS,
    "contract §4: tools": MCP,
    "cancel: protocol": """
CANCEL-acp-frame: The frame is {"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":…}}, nothing else.
CANCEL-acp-no-id: ACP's cancel is a notification: it has no id and waits for no response.
CANCEL-acp-only-session-id: The params of ACP's cancel hold sessionId only.
CANCEL-acp-prompt-returns: The pending session/prompt returns with stopReason "cancelled".
CANCEL-acp-at-once: The agent stops its current operation at once.
CANCEL-process-lives: The agent's process is not killed by a cancel that it obeys; the same one takes the next prompt.
""",
    "cancel: layers": """
CANCEL-layer-agentctl-server: POST /api/v1/acp/cancel calls the adapter and answers success or error.
CANCEL-layer-agentctl-client: The backend's client posts the cancel and turns a failed answer into an error.
CANCEL-layer-execution: A cancel is routed to the execution of the session; cancelled is not treated as an error.
CANCEL-layer-usecase: The use case looks up session, then execution, then turn, and asks the execution to cancel.
CANCEL-layer-websocket: agent.cancel over WebSocket takes {task_id, session_id} and answers {success, error?}.
CANCEL-layer-http: agent.cancel over HTTP answers the same as over WebSocket.
CANCEL-layer-cli: kandev cancel ends the turn and exits 0; it exits 1 when the answer is success:false.
""",
    "cancel: event flow": """
CANCEL-flow-1-message-sent: Step 1: the adapter sends the protocol's cancel message.
CANCEL-flow-2-agent-answers: Step 2: the agent stops and answers with the cancelled status.
CANCEL-flow-3-prompt-returns: Step 3: the prompt's end arrives with stop reason "cancelled".
CANCEL-flow-4-execution-ready: Step 4: the execution's status is ready, not completed, and the session waits for input.
CANCEL-flow-4-event: Step 4: an event tells clients that the turn was cancelled (session.turn.completed with its cause).
CANCEL-flow-5-client-sees: Step 5: a client sees progress, then "cancelled", and the session takes a new prompt.
""",
    "cancel: error table": """
CANCEL-error-no-active-turn: No active turn: success, and nothing happens.
CANCEL-error-agent-not-running: Agent not running: the error "agent not running".
CANCEL-error-session-not-found: Session not found: the error "session not found".
CANCEL-error-timeout: Cancel timeout: an error is answered, and the cancel is still in flight.
CANCEL-error-permission: Cancel during a permission request: the permission is cancelled, the turn ends cancelled.
""",
    "cancel: testing": """
CANCEL-test-adapter: The adapter, the client and the handler each have tests of their own.
CANCEL-test-integration: Start an agent, send a prompt, cancel it in mid-execution, with real processes.
CANCEL-test-protocol-acp: The JSON-RPC messages of ACP are tested as exact frames.
CANCEL-test-real-agents: A real ACP agent's turn is cancelled, nothing is left, and a second prompt is answered.
""",
    "turn control: cancel a turn": """
TURN-unknown-session: Session unknown or not of the given task: NOT_FOUND "session not found".
TURN-row-without-execution: A row says RUNNING or STARTING without execution: settled to WAITING_FOR_INPUT, CONFLICT.
TURN-no-execution: No execution: CONFLICT "agent not running".
TURN-no-turn: An execution and no active turn: {success:true}, no-op.
TURN-open-permission: An open permission is resolved as cancelled, then the turn is cancelled.
TURN-starting: Starting, first prompt not handed over: the start goes on, the prompt waits parked; {success:true}.
TURN-joined: A cancel of the same turn is under way: joined, with the same answer.
TURN-not-acknowledged: Not acknowledged in time: {success:false, "cancel timed out, still under way"}; escalated.
TURN-acknowledged-behind-output: An agent that acknowledged is not replaced, however much output lies before the end.
TURN-stop-meanwhile: A stop arrives meanwhile: {success:true}; the session is CANCELLED.
TURN-ended: Otherwise {success:true} when the turn has ended.
TURN-intent-decides: Our recorded intent decides that a turn was cancelled, not the agent's stop reason.
TURN-latched: A cancel that comes too early is latched until the agent can take it.
TURN-repeated: A cancel is repeated while no end comes, and never after the turn's end.
TURN-escalated-process-replaced: After an escalation the process never gets another prompt; a new one continues.
TURN-deadline-per-profile: A profile's own deadline for a cancel holds in both programs; its rest is shown by session.explain.
TURN-pending-visible: cancellation_pending and a growing cancellation_revision are on every session payload.
TURN-chat-line: After a cancel the chat holds a status line of author system with "cancelled" and who did it.
TURN-parked: After a person's cancel waiting entries are parked, visible with auto_run:false and parked_reason.
TURN-task-review: After a person's cancel the task is in REVIEW.
TURN-next-prompt: After a cancel the session takes the next prompt, in the same conversation.
TURN-caller-gone: A caller that goes away does not abort an accepted cancel.
""",
    "turn control: states": """
STATE-table: Only the changes of the state table are possible; the table is data and everything derives from it.
STATE-terminal: A terminal state is never overwritten by anything but an explicit resume or finish.
STATE-same-is-silent: Writing the same state again publishes nothing.
STATE-one-event: Each committed change publishes exactly one session.state_changed.
STATE-launch-with-prompt: A launch with a prompt never passes through WAITING_FOR_INPUT.
STATE-waiting-for: An open permission leaves the session RUNNING with waiting_for, and not promptable.
STATE-task: Task states follow the sessions: TODO, SCHEDULING, IN_PROGRESS, REVIEW; a failed launch goes back.
STATE-diagram: The diagram in the documentation is drawn from the table.
""",
    "turn control: messages": """
MESSAGE-queued-fifo: A message to a busy session is queued and drained in FIFO order at the turn's end.
MESSAGE-one-fate: An accepted entry has exactly one fate, which message.status tells.
MESSAGE-idempotency: The same key and content gets the first answer again; other content is a CONFLICT.
MESSAGE-unparks: A person's message to an idle session with a parked queue runs at once, the rest follows.
MESSAGE-failed-turn-parks: A failed turn parks the queue with the reason.
MESSAGE-queue-full: A full queue answers CONFLICT with error queue_full, queue_size and max; nothing is inserted.
MESSAGE-terminal-conflict: A message to a FAILED or CANCELLED session is a CONFLICT that names the way back.
""",
    "turn control: invariants": """
INV-1: At most one active turn per session and at most one live execution per session.
INV-2: Every accepted entry has one fate; never two dispatches of one entry; FIFO but for explicit jumps.
INV-3: An event whose identity is not current changes nothing observable.
INV-4: A cancel that was aimed at one turn never ends another.
INV-5: After a stop's acceptance no prompt is handed over and no entry is taken for that session.
INV-6: CANCELLED is durable and published before teardown begins; teardown begins although the caller is gone.
INV-7: Every refused call leaves database and processes as they were.
INV-8: No phase that waits for an agent outlives its deadline; when all is quiet nothing is left.
INV-9: When all is quiet no session is promptable, unparked and has an entry.
INV-10: When an execution is over no process with its mark lives.
""",
    "turn control: stop a session": """
STOP-running: A running session is CANCELLED and told so, its task is in REVIEW, then its process ends.
STOP-waiting: A waiting session whose process lives is CANCELLED, and its process ends.
STOP-nothing-runs: No process and nothing that would start one: NOT_FOUND, nothing changes, also the second time.
STOP-retry: Between a refused prompt and its retry the session is CANCELLED, and the retry never comes.
STOP-before-end: A turn's end that waits behind the stop is history: no drain.
STOP-over-cancel: A stop during the cancel of a deaf agent is answered at once; CANCELLED wins.
STOP-claimed: A claimed entry returns to its place unless the agent had taken it; then it was delivered.
STOP-death: A process that dies between commit and teardown is no failure: no FAILED, no retry.
STOP-latecomer: A session that is launched after the task's sessions were listed escapes the task's stop.
STOP-starting: A launch under way is rolled back when it comes back, and nothing is left.
STOP-caller-gone: The teardown is completed although the caller went away after the answer.
STOP-hanging-teardown: A teardown that hangs delays no answer; processes that are left are named.
STOP-last-words: A process that is proven gone is not called lost because reading its last words takes long.
""",
    "turn control: race matrix": """
RACE-I18: After a person's cancel a new message runs at once, the parked follow.
RACE-I19: The turn fails while entries wait: they are parked with the reason, not burnt one by one.
""",
    "turn control: agentctl's fences": """
CTL-fence-epoch: A request with a lower epoch than the highest seen is refused.
CTL-fence-duplicate: A known dispatch id gets its first answer again, duplicate:true, before any other check.
CTL-fence-refusal-for-ever: A refusal raises the generation mark: a delayed copy is refused too.
CTL-fence-cancel-generation: A cancel of a generation that was not seen makes it void when it comes.
CTL-fence-instance-id: A repeated create answers the existing instance; a deleted unknown id leaves a tombstone.
CTL-fence-journal-id: Frames carry journal id and position; the journal is kept until its end is acknowledged.
CTL-fence-own-permissions: Permission requests of a cancelled or finished generation are answered by agentctl itself.
CTL-fence-window: A bounded window is sent unacknowledged, the rest waits on disk, then the agent's stdout waits.
CTL-fence-older-incarnation: A new agentctl first ends whatever carries an older incarnation's mark.
""",
    "contract §3": """
CTL-token: Everything but /health demands the bearer token.
CTL-health: GET /health answers version, instances and uptime.
CTL-instances: Instances are created, listed, read and deleted; an unknown one is 404.
CTL-delete-survivors: Deleting an instance ends its process tree and reports survivors.
CTL-prompt: A prompt with dispatch id and generation is answered 202, or 409 when busy.
CTL-cancel: A cancel answers acknowledged, not_running or not_acknowledged.
CTL-dispatch: GET …/acp/dispatch/{id} says whether a dispatch was accepted.
CTL-permission: A permission request is answered through its endpoint.
CTL-stream: The stream replays the journal after N, in wire order, and takes acknowledgements.
CTL-stop: POST /api/v1/stop ends the process tree and keeps the journal.
CTL-sleep: POST /api/v1/sleep ends the agent, keeping its journal, only if nothing goes on; else 409 says what does.
CTL-events: Every event type of the contract reaches the stream with its execution and generation.
CTL-light: agentctl imports no pydantic, SQLAlchemy, mcp or httpx.
CTL-one-suite: The simulated and the real agentctl pass one contract suite.
CTL-process-exited: The end of a process is reported with exit code and the tail of stderr.
CTL-orphan: agentctl without a backend ends idle agents and then itself; a running turn goes on.
CTL-mcp: The instance's MCP server is tunnelled to the backend, and a stdio bridge exists.
CTL-auto-approve: auto_approve is decided in agentctl by option kind, allow_once before allow_always.
ACP-initialize: initialize is sent first; an answer may lack fields.
ACP-authenticate: A demand for authentication is told in the agent's own words.
ACP-new: session/new gets the working directory and the profile's MCP servers.
ACP-load: A conversation is loaded or resumed where the agent offers it; replayed history is not shown twice.
ACP-prompt: session/prompt carries the text; its answer ends the turn.
ACP-updates: Every kind of session/update becomes an event; an unknown kind kills nothing.
ACP-permission: session/request_permission is passed on with its options and answered with the chosen one.
ACP-fs: fs/* reads and writes inside the worktree only.
ACP-terminal: terminal/* creates, reads, waits for, kills and releases commands of the agent.
ACP-not-json: A line that is not JSON never kills the connection.
ACP-huge-line: A line up to 64 MiB is read; beyond that it is skipped with a visible notice.
ACP-unknown-request: An unknown request is answered with -32601; an unknown notification is ignored.
ACP-split-utf8: Characters that are split between reads arrive whole.
""",
    "survival: the store": """
STORE-upgrade-every-version: A database of every earlier version becomes one of the newest, with everything that was in it.
STORE-copy-before-upgrade: Before an upgrade changes anything a whole copy is made beside the database, and the log names it.
STORE-no-copy-no-upgrade: Where no copy can be made the start stops with one sentence, and the database is untouched.
STORE-failed-upgrade: An upgrade that fails or is killed leaves the database as it was; the sentence names the copy.
STORE-structure: A database whose tables are not those of its version is refused at the start, with what is wrong.
STORE-damaged-start: A damaged database stops the start with one sentence that names it and the way back; no bit of it changes.
STORE-damaged-running: Damage that is met at work fails the ask, is in the log and at /health, and nothing more is written.
STORE-backup: kandev db backup makes a whole copy while the backend works, prints its path and overwrites nothing.
STORE-check: kandev db check finds damage, rows that refer to nothing and wrong tables, exits 1 then, and changes nothing.
STORE-restore: kandev db restore takes only a sound copy, and keeps the database of before under a name that it prints.
STORE-restore-alone: kandev db restore refuses while a backend, an agent or another program uses the home or the database.
STORE-restore-killed: A restore that is killed at any step leaves a database, the old one or the new one, and loses neither.
STORE-restored-start: After a restore the backend starts, owns agentctl, and sends nothing by itself; sessions go on with the next message.
""",
    "contract §1": """
CLI-version: kandev --version prints name and version, fast.
CLI-ready-line: The first line on stdout is the ready object with url, home and pid; logs go to stderr.
CLI-port-0: Port 0 picks a free port.
CLI-agentctl: kandev agentctl runs the sidecar by itself.
CLI-mock-agent: kandev mock-agent speaks ACP on stdin and stdout.
CLI-call: kandev call prints the payload as JSON; exit 1 and the error object on stderr when it fails.
CLI-commands: task, session, message, cancel, stop, tail, agents and doctor exist, each with --json.
CLI-tail: kandev tail follows a session live to its end.
CLI-agents: kandev agents lists the known agents, which are here, and how to get the others.
CLI-doctor: kandev doctor says what is missing.
CLI-find-backend: Clients find the backend by --url, KANDEV_URL, then the home's backend.json (mode 0600).
CLI-one-backend: One backend per home; a killed process leaves the lock free.
CLI-sigterm: SIGTERM ends the backend; idle agents end with it; running turns go on and one line says so.
CLI-stop-agents: --stop-agents ends running agents too.
CLI-second-interrupt: A second Ctrl-C ends running agents too.
CLI-agent-environment: An agent inherits the named variables and its profile's, nothing of the backend's secrets.
CLI-settings-order: Command line, then environment, then config.toml, then defaults.
CLI-wrong-setting: A wrong setting stops the start with one sentence that names the key and the fix.
CLI-postgresql: A PostgreSQL URL is refused in one sentence until it is built.
CLI-token: Listening beyond loopback demands an access token, by header or cookie.
CLI-host-origin: Requests with a foreign Host or Origin are refused.
CLI-first-start: A first start makes workspace Default, workflow Kanban with four steps, and the profiles found.
""",
    "contract §4": """
MCP-task-mode: Each session's agent gets one server named kandev whose identity is fixed by its stream.
""",
    "contract §2": """
DOOR-frame: Frames have id, type, action, payload and timestamp; responses carry the request's id.
DOOR-http: POST /api/v1/actions/{action} answers the payload, or the error object with the status of its code.
DOOR-mcp-refused: Both doors refuse every action that begins with mcp. with FORBIDDEN, known or not.
DOOR-errors: An internal error shows a generic sentence and an error id that is in the log, nothing else.
DOOR-mutation-goes-on: A mutation that was accepted goes on when the socket goes away.
DOOR-times-ids: Ids are opaque strings; times are RFC 3339 UTC.
DOOR-lists: A list answers an object with the plural noun; sessions newest first, messages oldest first.
DOOR-large-lists: A list that is too large for one answer comes in parts, which together are the whole.
DOOR-growing-message: Chunks of one agent message are one message whose content grows.
DOOR-slow-client: A client that falls too far behind is told to reload and slows nobody.
DOOR-replay: A gap is replayed from since_seq, or the answer says {reload:true}.
DOOR-openapi: /openapi.json describes the actions.
DOOR-front-page: / serves a short page that says what runs where.
DOOR-health: GET /health and GET /metrics answer.
ACT-health.check: Answers status ok and the version.
ACT-workspace.list: Lists workspaces by creation, Default first.
ACT-workspace.create: Creates a workspace from its name.
ACT-workspace.get: Answers a workspace.
ACT-workspace.update: Renames a workspace.
ACT-workspace.delete: Deletes a workspace.
ACT-repository.list: Lists a workspace's repositories.
ACT-repository.create: Adds a path that is a git repository.
ACT-repository.get: Answers a repository.
ACT-repository.update: Changes a repository.
ACT-repository.delete: Removes a repository, not its files.
ACT-workflow.list: Lists a workspace's workflows with their steps, Kanban first.
ACT-workflow.get: Answers a workflow with its steps.
ACT-workflow.create: Creates a workflow.
ACT-workflow.update: Changes a workflow.
ACT-workflow.delete: Deletes a workflow.
ACT-workflow.step.create: Adds a step.
ACT-workflow.step.update: Changes a step and its events.
ACT-workflow.step.delete: Deletes a step.
ACT-workflow.step.reorder: Orders the steps.
ACT-workflow.export: Exports a workflow.
ACT-workflow.import: Imports a workflow.
ACT-agent.list: Lists the known agents, found on this machine or not.
ACT-agent.profile.list: Lists profiles; values of secret environment read "***".
ACT-agent.profile.get: Answers a profile.
ACT-agent.profile.create: Creates a profile from name, protocol and command.
ACT-agent.profile.update: Changes a profile; "***" keeps a secret's value.
ACT-agent.profile.delete: Deletes a profile.
ACT-task.create: Creates a task; without start_agent no step action runs; several repositories are refused.
ACT-task.get: Answers a task.
ACT-task.list: Lists tasks by workspace, workflow or parent; archived ones only when asked for.
ACT-task.update: Changes title, description, priority.
ACT-task.move: Moves a task to a step and position.
ACT-task.state: Sets a task's state.
ACT-task.archive: Archives a task; its sessions end.
ACT-task.unarchive: Takes the archive mark away.
ACT-task.delete: Deletes a task; its sessions end.
ACT-task.session.list: Lists a task's sessions, newest first.
ACT-session.launch: start, start_created, prepare and resume; answers as soon as the session is STARTING.
ACT-session.changes: Lists files changed against the base with counts.
ACT-session.diff: Answers the diff of one path or of all.
ACT-session.get: Answers state, execution, cancellation, active turn, queue and parked_reason.
ACT-session.stop: Stops a session; NOT_FOUND "execution not found" when nothing lives.
ACT-session.delete: Deletes a session.
ACT-session.rename: Renames a session.
ACT-session.set_primary: Makes a session the task's primary.
ACT-session.recover: The explicit resume, from the four states only, else CONFLICT.
ACT-session.explain: One sentence and data: what it does, waits for, since when, why the queue is parked.
ACT-message.add: Answers message_id, entry_id and sent, queued or started.
ACT-message.status: Answers the entry's fate.
ACT-message.list: Oldest first, with limit, before and after.
ACT-message.queue.get: Answers entries, count, max and auto_run.
ACT-message.queue.remove: Removes a waiting entry.
ACT-message.queue.add: Puts an entry strictly behind what waits; one with a coalescing key replaces its earlier one.
ACT-message.queue.update: Changes what a waiting entry says.
ACT-message.queue.clear: Empties the queue and says how many were removed.
ACT-message.queue.reorder: Orders the queue; every waiting entry is named once, else nothing changes.
ACT-message.queue.send_now: A waiting entry takes the place of the turn, silently; auto-run is on afterwards.
ACT-message.queue.drain: Runs the queue, a refused entry at once; CONFLICT says why nothing may run.
ACT-message.queue.auto_run.set: A durable switch: off holds what waits and comes, on releases it.
ACT-agent.cancel: Answers {success, session_id, error?}; success:false is a response.
ACT-orchestrator.stop: The operator's stop of a task.
ACT-permission.respond: Answers an open permission request by option, cancelled or rejected.
ACT-session.subscribe: Snapshot, then notifications.
ACT-session.unsubscribe: Ends the subscription.
ACT-workspace.snapshot: A part of a board: tasks with their sessions, and where the next part begins.
ACT-workspace.subscribe: Task, step and session-state events of a workspace.
ACT-workspace.unsubscribe: Ends the subscription.
NOTE-task: task.created, task.updated, task.deleted and task.state_changed are published.
NOTE-session: session.created, session.updated and session.deleted are published.
NOTE-catalogue: workflow.changed, agent.profile.changed and repository.changed are published.
NOTE-session.state_changed: Carries old_state and new_state.
NOTE-session.cancellation_changed: Carries pending and revision.
NOTE-session.turn: session.turn.started, and session.turn.completed with turn id, stop_reason and cause.
NOTE-session.message: session.message.added, and session.message.updated with offset and append.
NOTE-message.queue.status_changed: Published when the queue changes.
NOTE-session.permission_requested: Published with the options.
NOTE-session.agentctl: session.agentctl_ready and session.agentctl_error are published.
""",
    "hostile peers": """
""",
    "worktrees": """
TREE-own: A task with a repository gets its own worktree and branch under the home.
TREE-folder: A task without a repository gets a folder of its own.
TREE-changes: Changes and diffs against the base are readable.
""",
    "bad input": """
BAD-unknown-action: An unknown action is UNKNOWN_ACTION and names it.
BAD-malformed-frame: A frame that is not JSON or not an object is BAD_REQUEST with empty id and action.
BAD-unknown-field: An unknown field is a VALIDATION_ERROR that names it.
BAD-wrong-type: A wrong type is a VALIDATION_ERROR that names the field.
BAD-unknown-id: An unknown id is NOT_FOUND and names the kind of thing.
BAD-not-a-repository: A path that is no git repository is refused with a sentence that names it.
BAD-command-missing: A command that does not exist: the launch fails with a sentence that names it.
BAD-command-exits: A command that exits at once: the launch fails with exit code and last stderr lines.
BAD-command-no-protocol: A command that speaks no protocol: the launch fails at its deadline with a sentence.
BAD-port-in-use: A port in use stops the start with one sentence that names it.
BAD-home-unwritable: A home that cannot be written stops the start with one sentence.
BAD-newer-database: A database newer than the program is refused and left untouched.
BAD-no-traceback: No bad input shows a traceback to the user.
""",
    "contract §7": """
MOCK-echo: Other text is echoed back; blocks in <kandev-context> and <kandev-message> are ignored.
MOCK-load: It offers load and remembers its conversation.
MOCK-say: say TEXT is one message of its own id.
MOCK-think: think TEXT is one reasoning chunk.
MOCK-stream: stream N DELAY_MS sends N chunks.
MOCK-sleep: sleep SECONDS waits and ends at once on cancel.
MOCK-deaf: deaf SECONDS waits and ignores cancel.
MOCK-late: late SECONDS obeys cancel only after SECONDS.
MOCK-lie: lie SECONDS answers end_turn on cancel.
MOCK-tool: tool TITLE SECONDS is a tool call that runs for SECONDS.
MOCK-spawn: spawn SECONDS starts a child in its own session and says its pid.
MOCK-ask: ask TITLE is a permission request; says the outcome.
MOCK-mcp: mcp TOOL JSON calls a tool of its MCP server and says the whole result in one line.
MOCK-exit: exit CODE ends the process in the middle of a turn.
MOCK-crash: crash kills the process in the middle of a turn.
MOCK-garbage: garbage N sends N lines that are not JSON.
MOCK-flood: flood BYTES sends one message line of that size.
MOCK-silent: silent never answers the prompt and sends nothing.
MOCK-lose: lose N: the first N cancels are not seen.
MOCK-echo-after: echo-after N sends N more chunks after the turn's end.
MOCK-wake: wake SECONDS TEXT later starts a turn by itself that says TEXT.
MOCK-stubborn: stubborn ignores closed stdin and SIGTERM from now on.
MOCK-fail: fail CODE TEXT fails the prompt with that JSON-RPC error.
MOCK-update: update JSON sends any session/update as given.
MOCK-login: login: session/new demands authentication from now on.
""",
}


def _parse(block: str) -> list[tuple[str, str]]:
    pairs = []
    for line in block.strip().splitlines():
        name, _, text = line.partition(": ")
        pairs.append((name, text))
    return pairs


def _all() -> tuple[Requirement, ...]:
    built = [Requirement(n, source, t) for source, block in BUILT.items() for n, t in _parse(block)]
    later = [
        Requirement(n, source, t, issue) for (issue, source), block in LATER.items() for n, t in _parse(block)
    ]
    return (*built, *later)


REQUIREMENTS: tuple[Requirement, ...] = _all()

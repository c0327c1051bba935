"""Start an agent on a task: a new session, a prepared one, or one that is taken up again.

Answers as soon as the session is STARTING; the worktree and the process come up behind the answer. Not
here: what a launch does (`runtime.effects`), stopping.
"""

from dataclasses import dataclass, replace
from typing import Literal

from kandev.core.board import Profile, Repository, Task
from kandev.core.context_block import strip
from kandev.core.errors import Conflict, Invalid, NotFound
from kandev.core.inputs import Ask, Draft, Resume, Send
from kandev.core.records import SessionRecord
from kandev.core.session import Entry, Session
from kandev.core.views import wire_state
from kandev.ports.store import Tx
from kandev.runtime.pictures import announce_session
from kandev.usecases import finding
from kandev.usecases.answers import refuse
from kandev.usecases.context import Context

Intent = Literal["start", "start_created", "prepare", "resume"]


@dataclass(frozen=True)
class Opening:
    """What the agent is told first, and by which task's agent (None: a person)."""

    text: str
    sender_task_id: str | None = None
    sender_session_id: str | None = None


@dataclass(frozen=True)
class Launched:
    """`session.launch`'s result."""

    task_id: str
    session_id: str
    state: str
    execution_id: str | None
    worktree_path: str | None


async def launch_session(
    ctx: Context,
    *,
    task_id: str,
    intent: Intent = "start",
    session_id: str | None = None,
    agent_profile_id: str | None = None,
    prompt: Opening | str | None = None,
) -> Launched:
    """Raises NotFound (task, session, profile), Invalid (members that do not go together), Conflict
    (state). A call that is handled again starts no second session."""
    opening = Opening(prompt) if isinstance(prompt, str) else prompt
    opening = replace(opening, text=strip(opening.text)) if opening else None
    _check_shape(intent, session_id, None if opening is None else opening.text)
    if intent == "prepare":
        record = await _prepare(ctx, task_id, agent_profile_id)
    elif session_id is None:
        record = await ctx.store.write(lambda tx: new_session(ctx, tx, task_id, agent_profile_id))
        if record.state == "CREATED":  # else this call was handled before, and has begun it
            await _begin(ctx, record, opening)
    else:
        record = await ctx.store.read(lambda tx: _existing(tx, session_id, task_id, agent_profile_id))
        if intent == "resume" and record.state == "CREATED":
            raise Conflict("The session was never started: launch it with the intent start_created.")
        if intent == "start_created" and record.state != "CREATED":
            raise Conflict(f"The session is {record.state}: only a CREATED one is started by start_created.")
        await _begin(ctx, record, opening)
    return await _launched(ctx, record.id)


def _check_shape(intent: Intent, session_id: str | None, prompt: str | None) -> None:
    """Before anything is looked up or made."""
    makes = intent in ("start", "prepare")
    if makes and session_id is not None:
        raise Invalid(f"session_id does not go with the intent {intent}: it makes a new session.")
    if not makes and session_id is None:
        raise Invalid(f"session_id is missing: the intent {intent} needs it.")
    if intent == "prepare" and prompt is not None:
        raise Invalid("prompt does not go with the intent prepare: send it when the session starts.")
    if prompt is not None and not prompt.strip():
        raise Invalid("prompt is empty: say something, or leave it out.")


def _existing(tx: Tx, session_id: str, task_id: str, agent_profile_id: str | None) -> SessionRecord:
    finding.task_on_board(tx, task_id)
    record = finding.session(tx, session_id, task_id)
    if agent_profile_id is not None:
        finding.profile(tx, agent_profile_id)
        if agent_profile_id != record.agent_profile_id:
            raise Invalid("The session has another agent profile: start a new session with this one.")
    return record


def _profile(tx: Tx, task: Task, agent_profile_id: str | None) -> Profile:
    """The one asked for, the task's, or the oldest."""
    if profile_id := agent_profile_id or task.agent_profile_id:
        return finding.profile(tx, profile_id)
    if profiles := tx.profiles.list():
        return profiles[0]
    raise NotFound("There is no agent profile: create one first.")


def new_session(ctx: Context, tx: Tx, task_id: str, agent_profile_id: str | None = None) -> SessionRecord:
    """CREATED, without an agent. Raises NotFound; Conflict for an archived task."""
    id = ctx.ids.new("session")
    if known := tx.sessions.get(id):
        return known
    task = finding.task_on_board(tx, task_id)
    profile = _profile(tx, task, agent_profile_id)
    earlier = tx.sessions.of_task(task.id)
    now = ctx.clock.now()
    record = SessionRecord(
        id=id,
        task_id=task.id,
        workspace_id=task.workspace_id,
        name=f"Session {len(earlier) + 1}",
        agent_profile_id=profile.id,
        is_primary=not any(s.is_primary for s in earlier),
        value=Session(id),
        state="CREATED",
        created_at=now,
        updated_at=now,
        since=now,
    )
    tx.sessions.insert(record)
    announce_session(tx, record, ctx.deadlines.queue_max, "session.created")
    return record


async def _prepare(ctx: Context, task_id: str, agent_profile_id: str | None) -> SessionRecord:
    """Session and worktree, no agent. Where no worktree can be made, there is no session either."""

    def facts(tx: Tx) -> tuple[Task, Repository | None]:
        task = finding.task_on_board(tx, task_id)
        _profile(tx, task, agent_profile_id)
        return task, finding.repository_of(tx, task)

    task, repository = await ctx.store.read(facts)
    base = task.works_on.base_branch if task.works_on else None
    place = ctx.worktrees.place(task, repository)
    worktree = await ctx.worktrees.prepare(place, repository, base)

    def create(tx: Tx) -> SessionRecord:
        finding.task(tx, task_id)
        tx.tasks.set_worktree(worktree)
        return new_session(ctx, tx, task_id, agent_profile_id)

    return await ctx.store.write(create)


async def _begin(ctx: Context, record: SessionRecord, opening: Opening | None) -> None:
    fresh = record.state == "CREATED"
    if not fresh or opening is None:
        refuse(await ctx.sessions.ask(record.id, Resume))
    if opening is None:
        return
    first, by_agent = opening, opening.sender_task_id is not None

    def send(ask: str) -> Ask:
        message_id = ctx.ids.new("message")
        draft = Draft(first.text, message_id, first.sender_task_id, first.sender_session_id)
        entry = Entry(ctx.ids.new("entry"), by="peer" if by_agent else "person")
        return Send(ask, entry, draft, ctx.deadlines.queue_max)

    refuse(await ctx.sessions.ask(record.id, send))


async def _launched(ctx: Context, session_id: str) -> Launched:
    def read(tx: Tx) -> Launched:
        record = finding.session(tx, session_id)
        task = finding.task(tx, record.task_id)
        repository = finding.repository_of(tx, task)
        worktree = tx.tasks.worktree(task.id) or ctx.worktrees.place(task, repository)
        execution = record.value.execution if record.value.executions else None
        return Launched(task.id, record.id, wire_state(record.value), execution, worktree.path)

    return await ctx.store.read(read)

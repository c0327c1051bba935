"""Start an agent on a task: a new session, a prepared one, or one that is taken up again.

Answers as soon as the session is STARTING; the worktree and the process come up behind the answer. Not
here: what a launch does (`runtime.effects`), stopping.
"""

from dataclasses import dataclass
from typing import Literal

from kandev.core.board import Repository, Task
from kandev.core.errors import Conflict, Invalid, NotFound
from kandev.core.inputs import Ask, Draft, Resume, Send
from kandev.core.records import SessionRecord
from kandev.core.session import Entry, Session
from kandev.core.views import wire_state
from kandev.ports.store import Tx
from kandev.usecases import finding
from kandev.usecases.answers import refuse
from kandev.usecases.context import Context
from kandev.usecases.picturing import announce_session

Intent = Literal["start", "start_created", "prepare", "resume"]


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
    prompt: str | None = None,
) -> Launched:
    """Raises NotFound (task, session, profile), Invalid (members that do not go together), Conflict
    (state)."""
    if intent in ("start", "prepare"):
        if session_id is not None:
            raise Invalid(f"session_id does not go with the intent {intent}: it makes a new session.")
        record = await ctx.store.write(lambda tx: _create(ctx, tx, task_id, agent_profile_id))
    else:
        if session_id is None:
            raise Invalid(f"session_id is missing: the intent {intent} needs it.")
        record = await ctx.store.read(lambda tx: finding.session(tx, session_id, task_id))
    if intent == "prepare":
        await _prepare(ctx, record, prompt)
    elif intent == "resume" and record.state == "CREATED":
        raise Conflict("The session was never started: launch it with the intent start_created.")
    elif intent == "start_created" and record.state != "CREATED":
        raise Conflict(f"The session is {record.state}: only a CREATED one is started by start_created.")
    else:
        await _begin(ctx, record, prompt)
    return await _launched(ctx, record.id)


def _create(ctx: Context, tx: Tx, task_id: str, agent_profile_id: str | None) -> SessionRecord:
    task = finding.task(tx, task_id)
    if task.archived_at is not None:
        raise Conflict("The task is archived: unarchive it first.")
    profile_id = agent_profile_id or task.agent_profile_id
    profiles = tx.profiles.list()
    profile = (
        next((p for p in profiles if p.id == profile_id), None) if profile_id else next(iter(profiles), None)
    )
    if profile is None:
        known = "agent profile not found" if profile_id else "There is no agent profile: create one first."
        raise NotFound(known)
    earlier = tx.sessions.of_task(task.id)
    now = ctx.clock.now()
    id = ctx.ids.new("session")
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


async def _prepare(ctx: Context, record: SessionRecord, prompt: str | None) -> None:
    """Session and worktree, no agent. What is to be said first waits in the store with the first launch."""
    if prompt is not None:
        raise Invalid("prompt does not go with the intent prepare: send it when the session starts.")

    def facts(tx: Tx) -> tuple[Task, Repository | None]:
        task = finding.task(tx, record.task_id)
        return task, tx.repositories.get(task.repositories[0].repository_id) if task.repositories else None

    task, repository = await ctx.store.read(facts)
    base = task.repositories[0].base_branch if task.repositories else None
    place = ctx.worktrees.place(task, repository)
    worktree = await ctx.worktrees.prepare(place, repository, base)
    await ctx.store.write(lambda tx: tx.tasks.set_worktree(worktree))


async def _begin(ctx: Context, record: SessionRecord, prompt: str | None) -> None:
    def send(ask: str) -> Ask:
        draft = Draft(prompt or "", ctx.ids.new("message"))
        return Send(ask, Entry(ctx.ids.new("entry")), draft, ctx.deadlines.queue_max)

    fresh = record.state == "CREATED"
    if not fresh or prompt is None:
        refuse(await ctx.sessions.ask(record.id, Resume))
    if prompt is not None:
        refuse(await ctx.sessions.ask(record.id, send))


async def _launched(ctx: Context, session_id: str) -> Launched:
    def read(tx: Tx) -> Launched:
        record = finding.session(tx, session_id)
        task = finding.task(tx, record.task_id)
        repository = tx.repositories.get(task.repositories[0].repository_id) if task.repositories else None
        worktree = tx.tasks.worktree(task.id) or ctx.worktrees.place(task, repository)
        execution = record.value.execution if record.value.executions else None
        return Launched(task.id, record.id, wire_state(record.value), execution, worktree.path)

    return await ctx.store.read(read)

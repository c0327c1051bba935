"""What it takes to start an execution: the facts about its session, and a worktree that is ready.

Not here: starting it (`effects`), who decides that it starts (`core`).
"""

from kandev.core.board import Profile, Repository, Task, Worktree
from kandev.core.errors import AgentFault
from kandev.core.records import SessionRecord
from kandev.ports.execution import LaunchSpec
from kandev.ports.store import Store, Tx
from kandev.ports.worktrees import Worktrees
from kandev.runtime.awake import Within
from kandev.runtime.deadlines import Deadlines

Facts = tuple[SessionRecord, Task, Profile, Repository | None, Worktree | None]


async def launch_spec(
    store: Store, worktrees: Worktrees, deadlines: Deadlines, session_id: str, execution: str
) -> LaunchSpec:
    """Prepares the worktree. Raises AgentFault for what was deleted meanwhile, what preparing raises, and
    TimeoutError when that takes longer than `worktree_s`."""
    record, task, profile, repository, known = await store.read(lambda tx: _facts(tx, session_id))
    place = known or worktrees.place(task, repository)
    base = task.works_on.base_branch if task.works_on else None
    async with Within(deadlines.worktree_s):
        worktree = await worktrees.prepare(place, repository, base)
    if worktree != known:
        await store.write(lambda tx: tx.tasks.set_worktree(worktree))
    return LaunchSpec(
        execution=execution,
        session_id=record.id,
        task_id=task.id,
        protocol=profile.protocol,
        command=profile.command,
        cwd=worktree.path,
        env=profile.env,
        mcp_servers=profile.mcp_servers,
        # One in which nothing was said has nothing to be taken up.
        resume_token=record.value.conversation if record.value.generation else None,
        model=profile.model,
        mode=profile.mode,
        auto_approve=profile.auto_approve,
        auth_method=profile.auth_method,
        withhold=profile.withhold,
        cancel_acknowledge_s=profile.cancel_acknowledge_s,
        mcp_mode="task",
    )


def _facts(tx: Tx, session_id: str) -> Facts:
    record = tx.sessions.get(session_id)
    task = tx.tasks.get(record.task_id) if record else None
    profile = tx.profiles.get(record.agent_profile_id) if record else None
    if record is None or task is None:
        raise AgentFault("its session or task was deleted.")
    if profile is None:
        raise AgentFault("its agent profile was deleted: choose another one.")
    repository = tx.repositories.get(task.works_on.repository_id) if task.works_on else None
    if task.works_on and repository is None:
        raise AgentFault("its repository was removed from Kandev.")
    return record, task, profile, repository, tx.tasks.worktree(task.id)

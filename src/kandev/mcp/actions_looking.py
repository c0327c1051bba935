"""Actions that only look: tasks, sessions, conversations, the board. Nothing beyond the caller's
workspace."""

from collections.abc import Sequence
from typing import Final, Literal

from kandev.core.board import Task
from kandev.core.errors import Invalid
from kandev.mcp import arguments, pictures, results
from kandev.mcp.action import McpChapter
from kandev.mcp.caller import Caller
from kandev.ports.store import Tx
from kandev.usecases import reach
from kandev.usecases.context import Context
from kandev.usecases.talked_to import talked_to

RELATED_MAX: Final = 50
"""Children, and siblings, in one answer."""
SESSIONS_MAX: Final = 50
CONVERSATION_MAX: Final = 64_000
"""Characters of one page of a conversation; one message alone is shorter."""
LISTED_MAX: Final = 200
"""Workflows, steps or agents in one answer."""

chapter = McpChapter()


@chapter.read("mcp.list_tasks", arguments.ListTasks)
async def list_tasks(ctx: Context, caller: Caller, asked: arguments.ListTasks) -> results.Tasks:
    def look(tx: Tx) -> results.Tasks:
        own = reach.own_task(tx, caller.task_id)
        if asked.workflow_id is not None:
            reach.workflow(tx, caller.task_id, asked.workflow_id)
        if asked.parent_id is not None:
            reach.task(tx, caller.task_id, asked.parent_id)
        if asked.cursor is not None:
            last = tx.tasks.get(asked.cursor)
            if last is None or last.workspace_id != own.workspace_id:
                raise Invalid("The field `cursor` is not known (any more); list again without it.")
        rows = tx.tasks.list(
            workspace_id=own.workspace_id,
            workflow_id=asked.workflow_id,
            parent_id=asked.parent_id,
            include_archived=asked.include_archived,
            limit=asked.limit + 1,
            after=asked.cursor,
        )
        page = rows[: asked.limit]
        more = page[-1].id if len(rows) > len(page) else None
        return results.Tasks(tasks=[pictures.task(tx, row) for row in page], next_cursor=more)

    return await ctx.store.read(look)


@chapter.read("mcp.list_related_tasks", arguments.OfTask)
async def list_related_tasks(ctx: Context, caller: Caller, asked: arguments.OfTask) -> results.Related:
    def look(tx: Tx) -> results.Related:
        task = reach.task(tx, caller.task_id, asked.task_id)
        parent = tx.tasks.get(task.parent_id) if task.parent_id else None
        children = _below(tx, task.id)
        siblings = [row for row in _below(tx, parent.id, 1) if row.id != task.id] if parent else []
        more: list[Literal["children", "siblings"]] = []
        if len(children) > RELATED_MAX:
            more.append("children")
        if len(siblings) > RELATED_MAX:
            more.append("siblings")

        def shown(rows: Sequence[Task]) -> list[results.Task]:
            return [pictures.task(tx, row, sessions=True) for row in rows[:RELATED_MAX]]

        return results.Related(
            task=shown([task])[0],
            parent=shown([parent])[0] if parent else None,
            children=shown(children),
            siblings=shown(siblings),
            more=more or None,
        )

    return await ctx.store.read(look)


def _below(tx: Tx, parent_id: str, beside: int = 0) -> Sequence[Task]:
    """Its children, one more than are shown. `beside` are not shown."""
    return tx.tasks.list(parent_id=parent_id, limit=RELATED_MAX + 1 + beside)


@chapter.read("mcp.list_task_sessions", arguments.OfTask)
async def list_task_sessions(ctx: Context, caller: Caller, asked: arguments.OfTask) -> results.Sessions:
    def look(tx: Tx) -> results.Sessions:
        task = reach.task(tx, caller.task_id, asked.task_id)
        rows = tx.sessions.of_task(task.id)
        shown = [pictures.session(row) for row in rows[:SESSIONS_MAX]]
        return results.Sessions(task_id=task.id, sessions=shown, more=len(rows) > len(shown))

    return await ctx.store.read(look)


@chapter.read("mcp.get_task_conversation", arguments.Conversation)
async def get_task_conversation(
    ctx: Context, caller: Caller, asked: arguments.Conversation
) -> results.Conversation:
    def look(tx: Tx) -> results.Conversation:
        task = reach.task(tx, caller.task_id, asked.task_id)
        row = talked_to(tx, task, asked.session_id)
        found = (
            tx.messages.latest(row.id, asked.limit)
            if asked.before is None
            else tx.messages.page(row.id, limit=asked.limit, before=asked.before)
        )
        messages = _newest([pictures.message(m) for m in found])
        first = messages[0].message_id if messages else None
        earlier = first is not None and bool(tx.messages.page(row.id, limit=1, before=first))
        return results.Conversation(
            task_id=task.id,
            session_id=row.id,
            state=pictures.session(row).state,
            messages=messages,
            next_before=first if earlier else None,
        )

    return await ctx.store.read(look)


def _newest(messages: Sequence[results.Message]) -> list[results.Message]:
    """As many as fit, counted from the newest."""
    size, kept = 0, 0
    for message in reversed(messages):
        size += len(message.content)
        if size > CONVERSATION_MAX:
            break
        kept += 1
    return list(messages[len(messages) - kept :])


@chapter.read("mcp.list_workspaces", arguments.Nothing)
async def list_workspaces(ctx: Context, caller: Caller, _asked: arguments.Nothing) -> results.Workspaces:
    def look(tx: Tx) -> results.Workspaces:
        row = tx.workspaces.get(reach.own_task(tx, caller.task_id).workspace_id)
        known = [results.Workspace(workspace_id=row.id, name=row.name)] if row else []
        return results.Workspaces(workspaces=known)

    return await ctx.store.read(look)


@chapter.read("mcp.list_workflows", arguments.Nothing)
async def list_workflows(ctx: Context, caller: Caller, _asked: arguments.Nothing) -> results.Workflows:
    def look(tx: Tx) -> results.Workflows:
        rows = tx.workflows.list(reach.own_task(tx, caller.task_id).workspace_id)
        return results.Workflows(
            workflows=[
                results.Workflow(workflow_id=row.id, name=row.name, style=row.style)
                for row in rows[:LISTED_MAX]
            ]
        )

    return await ctx.store.read(look)


@chapter.read("mcp.list_workflow_steps", arguments.ListSteps)
async def list_workflow_steps(ctx: Context, caller: Caller, asked: arguments.ListSteps) -> results.Steps:
    def look(tx: Tx) -> results.Steps:
        row = reach.workflow(tx, caller.task_id, asked.workflow_id)
        steps = [
            results.Step(workflow_step_id=s.id, name=s.name, position=s.position, final=s.final)
            for s in row.steps[:LISTED_MAX]
        ]
        return results.Steps(workflow_id=row.id, steps=steps)

    return await ctx.store.read(look)


@chapter.read("mcp.list_agents", arguments.Nothing)
async def list_agents(ctx: Context, _caller: Caller, _asked: arguments.Nothing) -> results.Agents:
    def look(tx: Tx) -> results.Agents:
        return results.Agents(
            agents=[
                results.Agent(
                    agent_profile_id=row.id, name=row.name, agent=row.agent, model=row.model, mode=row.mode
                )
                for row in tx.profiles.list()[:LISTED_MAX]
            ]
        )

    return await ctx.store.read(look)

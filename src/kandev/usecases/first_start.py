"""What a new home begins with, once: workspace Default, workflow Kanban, and a profile for each agent that
is found.

Both parts leave a note in the store, so that what a person deletes does not come back. Not here: when they
run (`bootstrap`: the first before the ready line, the second after it, for looking at PATH takes a moment).
"""

from collections.abc import Sequence
from typing import Final, Literal, cast

from kandev.core.board import Profile, Workspace
from kandev.ports.catalogue import KnownAgent
from kandev.ports.store import Tx
from kandev.runtime import announcements
from kandev.usecases.context import Context
from kandev.usecases.profiles import NewProfile, build
from kandev.usecases.workflows import KANBAN
from kandev.usecases.workflows import build as build_workflow

STARTED: Final = "first_start"
LOOKED: Final = "first_look"
MOCK: Final = "mock"


async def first_start(ctx: Context, *, mock_command: Sequence[str]) -> bool:
    """Workspace, workflow, and the profile of the mock agent, which `mock_command` starts. False: done
    before."""
    now = ctx.clock.now()
    workspace = Workspace(ctx.ids.new("workspace"), "Default", now, now)
    workflow = build_workflow(ctx, workspace.id, "Kanban", "kanban", KANBAN)
    mock = build(ctx, NewProfile("Mock agent", mock_command, agent=MOCK))

    def begin(tx: Tx) -> bool:
        if tx.note(STARTED) is not None:
            return False
        tx.workspaces.insert(workspace)
        tx.workflows.insert(workflow)
        tx.profiles.insert(mock)
        announcements.workflow_changed(tx, workflow)
        announcements.profile_changed(tx, mock)
        tx.set_note(STARTED, now)
        return True

    return await ctx.store.write(begin)


async def add_found_profiles(ctx: Context) -> tuple[Profile, ...]:
    """A profile for every known agent that is on this machine; none when that was done before."""
    if await ctx.store.read(lambda tx: tx.note(LOOKED)) is not None:
        return ()
    found = [a for a in await ctx.catalogue.look(versions=False) if a.found and a.name != MOCK]
    rows = tuple(build(ctx, _profile(agent)) for agent in found)
    now = ctx.clock.now()

    def add(tx: Tx) -> tuple[Profile, ...]:
        if tx.note(LOOKED) is not None:
            return ()
        for row in rows:
            tx.profiles.insert(row)
            announcements.profile_changed(tx, row)
        tx.set_note(LOOKED, now)
        return rows

    return await ctx.store.write(add)


def _profile(agent: KnownAgent) -> NewProfile:
    return NewProfile(
        agent.title,
        agent.command,
        protocol=cast(Literal["acp", "codex"], agent.protocol),
        env=dict(agent.env),
        auth_method=agent.auth_method,
        withhold=agent.withhold,
        agent=agent.name,
    )

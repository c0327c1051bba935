"""Survivors are told of until agentctl has seen them gone."""

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from kandev.core.records import ExecutionRecord
from kandev.ports.execution import Agents, Running
from kandev.runtime.orphans import end_orphans
from kandev.storage.opening import open_store
from kandev.storage.schema import HEAD
from tests.storage.rows import Listener
from tests.storage.schemas import lay


class Answers:
    """An agentctl that knows these executions, and cannot end them; None: none runs."""

    def __init__(self, ids: list[str] | None) -> None:
        self.ids = ids
        self.forgotten: list[str] = []

    async def known(self, deadline: float) -> tuple[Running, ...]:
        return tuple(Running(id, "of nobody", "j", "ended") for id in self.ids or ())

    async def forget(self, execution: str, deadline: float) -> None:
        self.forgotten.append(execution)

    async def unknown(self, executions: Collection[str], deadline: float) -> Collection[str]:
        return () if self.ids is None else set(executions) - set(self.ids)


@pytest.mark.proves("SURVIVE-survivors")
async def test_survivors_are_named_until_agentctl_no_longer_knows_of_them(tmp_path: Path) -> None:
    store = await open_store(str(lay(HEAD, tmp_path / "kandev.db")), publisher=Listener(), commit_s=20)
    try:
        workspaces = await store.read(lambda tx: tx.workspaces.list())
        (session, *_) = await store.read(lambda tx: tx.sessions.of_workspace(workspaces[0].id))
        run = ExecutionRecord("x.90", session.id, 90, "gone", session.since, survivors=("12 sleep",))
        await store.write(lambda tx: tx.executions.insert(run))

        async def after(ids: list[str] | None) -> ExecutionRecord | None:
            agents = Answers(ids)
            await end_orphans(store, cast(Agents, agents), 1)
            assert agents.forgotten == (ids or [])
            return await store.read(lambda tx: tx.executions.get(run.id))

        assert await after(None) == run, "nobody has looked"
        assert await after([run.id]) == run, "they are still there"
        assert await after([]) == replace(run, survivors=())
    finally:
        await store.close()

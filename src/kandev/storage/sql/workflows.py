"""Workflows with their steps in the database: two tables, one record."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, bindparam, select

from kandev.core.board import Step, Workflow
from kandev.storage.sql.rows import Mapped, Rows
from kandev.storage.sql.tables import steps, workflows

MAPPED = Mapped("workflow", Workflow, workflows, apart=("steps",))
OF_WORKSPACE = MAPPED.select.where(workflows.c.workspace_id == bindparam("of")).order_by(
    workflows.c.created_at, workflows.c.id
)
STEP = Mapped("workflow step", Step, steps)
STEPS = STEP.select.where(steps.c.workflow_id == bindparam("of")).order_by(steps.c.position, steps.c.id)
STEP_IDS = select(steps.c.id).where(steps.c.workflow_id == bindparam("of"))


class SqlWorkflows(Rows[Workflow]):
    """See `ports.store.Workflows`."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection, MAPPED)
        self._steps = Rows(connection, STEP)

    def list(self, workspace_id: str) -> Sequence[Workflow]:
        """Those of a workspace, by creation, each with its steps."""
        return self.all(OF_WORKSPACE, {"of": workspace_id})

    def step(self, step_id: str) -> Step | None:
        """One step."""
        return self._steps.get(step_id)

    def insert(self, row: Workflow) -> None:
        """With its steps; positions are counted from 0."""
        super().insert(row)
        self._put_steps(row)

    def update(self, row: Workflow) -> None:
        """With its steps: those it no longer names are deleted. StaleVersion while one of them holds
        tasks.
        """
        super().update(row)
        self._put_steps(row)

    def record(self, *values: Any) -> Workflow:
        """The workflow of these columns, with its steps."""
        found = dict(zip(self.mapped.names, values, strict=True))
        return Workflow(**found, steps=tuple(self._steps.all(STEPS, {"of": found["id"]})))

    def _put_steps(self, row: Workflow) -> None:
        before = set(self.connection.execute(STEP_IDS, {"of": row.id}).scalars())
        for gone in sorted(before - {step.id for step in row.steps}):
            self._steps.delete(gone)
        for position, step in enumerate(row.steps):
            placed = replace(step, workflow_id=row.id, position=position)
            if step.id in before:
                self._steps.update(placed)
            else:
                self._steps.insert(placed)

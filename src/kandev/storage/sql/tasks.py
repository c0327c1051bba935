"""Tasks and their worktrees in the database."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, bindparam, func, insert, select, tuple_, update

from kandev.core.board import Task, Worktree
from kandev.core.errors import NotFound
from kandev.storage.sql.rows import Mapped, Rows
from kandev.storage.sql.tables import tasks, worktrees

MAPPED = Mapped("task", Task, tasks)
BY_CREATION = (tasks.c.created_at, tasks.c.id)
BY_EXTERNAL_ID = MAPPED.select.where(
    tasks.c.workspace_id == bindparam("of"), tasks.c.external_id == bindparam("external")
)
CHILDREN = MAPPED.select.where(tasks.c.parent_id == bindparam("of")).order_by(*BY_CREATION)
CREATED = select(*BY_CREATION).where(tasks.c.id == bindparam("of"))
LAST_POSITION = select(func.max(tasks.c.position)).where(tasks.c.workflow_step_id == bindparam("of"))
PLACES = (
    select(tasks.c.id, tasks.c.position)
    .where(tasks.c.workflow_step_id == bindparam("of"), tasks.c.archived_at.is_(None))
    .order_by(tasks.c.position, *BY_CREATION)
)
OWING = select(tasks.c.id).where(tasks.c.owed_enter.is_not(None)).order_by(*BY_CREATION)
WORKTREE = select(worktrees).where(worktrees.c.task_id == bindparam("of"))
UPDATE_WORKTREE = update(worktrees).where(worktrees.c.task_id == bindparam("of"))
INSERT_WORKTREE = insert(worktrees)
WORKTREE_COLUMNS = tuple(worktrees.c.keys())


class SqlTasks(Rows[Task]):
    """See `ports.store.Tasks`."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection, MAPPED)

    def list(
        self,
        *,
        workspace_id: str | None = None,
        workflow_id: str | None = None,
        parent_id: str | None = None,
        include_archived: bool = False,
        limit: int | None = None,
        after: str | None = None,
    ) -> Sequence[Task]:
        """By creation, after the task `after`; NotFound when that one is gone."""
        wanted: list[ColumnElement[bool]] = []
        given = {"workspace_id": workspace_id, "workflow_id": workflow_id, "parent_id": parent_id}
        wanted.extend(tasks.c[name] == value for name, value in given.items() if value is not None)
        if not include_archived:
            wanted.append(tasks.c.archived_at.is_(None))
        if after is not None:
            wanted.append(tuple_(*BY_CREATION) > tuple_(*self._place(after)))
        query: Select[Any] = MAPPED.select.where(*wanted).order_by(*BY_CREATION)
        return self.all(query if limit is None else query.limit(limit))

    def by_external_id(self, workspace_id: str, external_id: str) -> Task | None:
        """The task of a workspace that another system knows by this id."""
        return self.one(BY_EXTERNAL_ID, {"of": workspace_id, "external": external_id})

    def next_position(self, step_id: str) -> int:
        """Behind the last card of the step; 0 when it is empty."""
        last: int | None = self.connection.execute(LAST_POSITION, {"of": step_id}).scalar()
        return 0 if last is None else last + 1

    def places(self, step_id: str) -> Sequence[tuple[str, int]]:
        """The cards of a step that are not archived, in their order: `(id, position)`."""
        return [(id, position) for id, position in self.connection.execute(PLACES, {"of": step_id})]

    def owing(self) -> Sequence[str]:
        """Ids of the tasks whose step owes something, by creation."""
        return list(self.connection.execute(OWING).scalars())

    def worktree(self, task_id: str) -> Worktree | None:
        """Where the task's agents work, once it was made."""
        found = self.connection.execute(WORKTREE, {"of": task_id}).first()
        return None if found is None else Worktree(**found._mapping)

    def set_worktree(self, worktree: Worktree) -> None:
        """Instead of an earlier one. StaleVersion when the task is gone."""
        values = {name: getattr(worktree, name) for name in WORKTREE_COLUMNS}
        if not self.write(UPDATE_WORKTREE, {**values, "of": worktree.task_id}):
            self.write(INSERT_WORKTREE, values)

    def children(self, task_id: str) -> Sequence[Task]:
        """Its subtasks, archived ones too, by creation."""
        return self.all(CHILDREN, {"of": task_id})

    def _place(self, id: str) -> tuple[str, str]:
        found = self.connection.execute(CREATED, {"of": id}).first()
        if found is None:
            raise NotFound(f"There is no task {id!r} to list after.")
        return found[0], found[1]

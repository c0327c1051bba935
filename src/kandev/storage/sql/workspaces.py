"""Workspaces in the database."""

from collections.abc import Sequence

from sqlalchemy import Connection

from kandev.core.board import Workspace
from kandev.storage.sql.rows import Mapped, Rows
from kandev.storage.sql.tables import workspaces

MAPPED = Mapped("workspace", Workspace, workspaces)
ALL = MAPPED.select.order_by(workspaces.c.created_at, workspaces.c.id)


class SqlWorkspaces(Rows[Workspace]):
    """See `ports.store.Workspaces`."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection, MAPPED)

    def list(self) -> Sequence[Workspace]:
        """All, by creation."""
        return self.all(ALL)

"""Repositories in the database."""

from collections.abc import Sequence

from sqlalchemy import Connection, bindparam

from kandev.core.board import Repository
from kandev.storage.sql.rows import Mapped, Rows
from kandev.storage.sql.tables import repositories

MAPPED = Mapped("repository", Repository, repositories)
OF_WORKSPACE = MAPPED.select.where(repositories.c.workspace_id == bindparam("of")).order_by(
    repositories.c.created_at, repositories.c.id
)


class SqlRepositories(Rows[Repository]):
    """See `ports.store.Repositories`."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection, MAPPED)

    def list(self, workspace_id: str) -> Sequence[Repository]:
        """Those of a workspace, by creation."""
        return self.all(OF_WORKSPACE, {"of": workspace_id})

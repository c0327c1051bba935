"""Agent profiles in the database, secrets included: the file is readable by its owner only."""

from collections.abc import Sequence

from sqlalchemy import Connection

from kandev.core.board import Profile
from kandev.storage.sql.rows import Mapped, Rows
from kandev.storage.sql.tables import profiles

MAPPED = Mapped("agent profile", Profile, profiles)
ALL = MAPPED.select.order_by(profiles.c.created_at, profiles.c.id)


class SqlProfiles(Rows[Profile]):
    """See `ports.store.Profiles`."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection, MAPPED)

    def list(self) -> Sequence[Profile]:
        """All, by creation."""
        return self.all(ALL)

"""Steps that are entered: what a task still owes to one, and in which a turn began. Frozen, as every
migration.

Every task is taken as not having entered its step yet, and every turn as having begun in it: a turn that runs
while a program is replaced ends in the step in which it began.
"""

from alembic import op
from sqlalchemy import Column, Integer, Text, text

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

ADDED = (
    ("tasks", "entered", Integer),
    ("tasks", "automatic", Integer),
    ("tasks", "pending_move", Text),
    ("tasks", "owed_enter", Text),
    ("turns", "entered", Integer),
    ("entries", "coalesce", Text),
    ("entries", "sender_session_id", Text),
    ("entries", "first_content", Text),
)
OWED = "ix_tasks_owed_enter"


def upgrade() -> None:
    """Columns are added where the rows are: no table is built anew."""
    for table, name, kind in ADDED:
        if kind is Integer:
            op.add_column(table, Column(name, kind, nullable=False, server_default=text("0")))
        else:
            op.add_column(table, Column(name, kind, nullable=True))
    op.create_index(OWED, "tasks", ["created_at", "id"], sqlite_where=text("owed_enter IS NOT NULL"))


def downgrade() -> None:
    """What is owed to a step is forgotten."""
    op.drop_index(OWED, "tasks")
    for table, name, _ in reversed(ADDED):
        op.execute(f'ALTER TABLE {table} DROP COLUMN "{name}"')

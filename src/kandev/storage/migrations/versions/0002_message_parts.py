"""Parts of messages: what a text grows by lies beside its message. Frozen, as every migration.

Nothing is moved: the text of a message that has no parts is what its own row holds.
"""

from alembic import op
from sqlalchemy import Column, ForeignKeyConstraint, Integer, PrimaryKeyConstraint, Text

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Makes the table, empty."""
    op.create_table(
        "message_parts",
        Column("message_id", Text, nullable=False),
        Column("offset", Integer, nullable=False),
        Column("length", Integer, nullable=False),
        Column("text", Text, nullable=False),
        PrimaryKeyConstraint("message_id", "offset", name=op.f("pk_message_parts")),
        ForeignKeyConstraint(
            ["message_id"],
            ["messages.id"],
            name=op.f("fk_message_parts_message_id"),
            ondelete="CASCADE",
        ),
    )


def downgrade() -> None:
    """Texts become whole in their rows again."""
    op.execute(
        """
        UPDATE messages SET
            content = content || (
                SELECT group_concat(text, '') FROM (
                    SELECT text FROM message_parts WHERE message_id = messages.id ORDER BY "offset"
                )
            ),
            length = (
                SELECT max("offset" + message_parts.length) FROM message_parts
                WHERE message_id = messages.id
            )
        WHERE id IN (SELECT message_id FROM message_parts)
        """
    )
    op.drop_table("message_parts")

"""Run by Alembic: the migrations go to the connection, and into the transaction, that `schema.upgrade` was
given.
"""

from alembic import context

from kandev.storage.sql.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    # SQLite changes most of a table only by building it anew.
    render_as_batch=True,
)
context.run_migrations()

"""Alembic's environment: inside the transaction of `layout.prepare`, on the connection that it hands over."""

from alembic import context

from hostler.journal import schema
from hostler.journal.layout import TABLE

context.configure(
    connection=context.config.attributes["connection"], target_metadata=schema.metadata, version_table=TABLE
)
with context.begin_transaction():
    context.run_migrations()

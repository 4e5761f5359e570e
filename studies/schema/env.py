"""Alembic's entry: runs our migrations on the connection that the caller holds, inside the caller's transaction."""

from alembic import context
from sqlalchemy import Connection

from studies.schema.tables import VERSION_TABLE

connection: Connection = context.config.attributes["connection"]
context.configure(connection=connection, version_table=VERSION_TABLE)
with context.begin_transaction():
    context.run_migrations()

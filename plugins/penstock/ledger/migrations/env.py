"""Alembic's entry: the caller's connection, and a version table in our own schema."""

from alembic import context

context.configure(
    connection=context.config.attributes["connection"],
    version_table="alembic_version",
    version_table_schema="penstock",
)
context.run_migrations()

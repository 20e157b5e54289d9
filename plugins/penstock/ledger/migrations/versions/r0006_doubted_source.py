"""Doubted source: a source that was found with another history stays doubted until its windows are read again as they were."""

from alembic import op

from penstock import sql

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Run the statements of `include/sql/ledger/migrations/0006` in order."""
    for name in sql.names("ledger/migrations/0006"):
        op.get_bind().exec_driver_sql(sql.load(name))

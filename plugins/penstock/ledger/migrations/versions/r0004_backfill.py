"""Backfill: marks where the lake must be exact, rebuilds, changelogs, verifications, maintenance."""

from alembic import op

from penstock import sql

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Run the statements of `include/sql/ledger/migrations/0004` in order."""
    for name in sql.names("ledger/migrations/0004"):
        op.get_bind().exec_driver_sql(sql.load(name))

"""Eras: what a pipeline captured from one slot, and the gaps between; whether Penstock made the slot."""

from alembic import op

from penstock import sql

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Run the statements of `include/sql/ledger/migrations/0003` in order."""
    for name in sql.names("ledger/migrations/0003"):
        op.get_bind().exec_driver_sql(sql.load(name))

"""Slot health: samples of every slot, and alarms that open once and close once."""

from alembic import op

from penstock import sql

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Run the statements of `include/sql/ledger/migrations/0002` in order."""
    for name in sql.names("ledger/migrations/0002"):
        op.get_bind().exec_driver_sql(sql.load(name))

"""The first ledger: pipelines, windows, relations, tables, copies, cuts, slot samples and events."""

from alembic import op

from penstock import sql

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Run the statements of `include/sql/ledger/migrations/0001` in order."""
    for name in sql.names("ledger/migrations/0001"):
        op.get_bind().exec_driver_sql(sql.load(name))

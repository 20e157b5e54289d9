"""The first ledger: everything in `penstock`, one statement a file."""

from alembic import op

from penstock import sql

# Not "0001": ledgers of before the first release stand at revisions of that kind, and must not be taken for this one.
revision = "r0001"
down_revision = None


def upgrade() -> None:
    """Run the statements of `include/sql/ledger/migrations/r0001` in order."""
    for name in sql.names("ledger/migrations/r0001"):
        op.get_bind().exec_driver_sql(sql.load(name))

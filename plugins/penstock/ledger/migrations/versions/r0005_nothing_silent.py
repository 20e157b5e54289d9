"""Nothing silently wrong: what a window, a cut and a table must remember to notice what the stream does not carry."""

from alembic import op

from penstock import sql

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Run the statements of `include/sql/ledger/migrations/0005` in order."""
    for name in sql.names("ledger/migrations/0005"):
        op.get_bind().exec_driver_sql(sql.load(name))

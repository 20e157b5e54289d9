"""The ledger as the use cases see it: one class, one method per thing that happens, one transaction per method."""

from __future__ import annotations

from penstock.ledger.advisory_lock import Holding
from penstock.ledger.barriers import Marks
from penstock.ledger.changelogs import Changelogs
from penstock.ledger.events import Journal
from penstock.ledger.health import Health
from penstock.ledger.maintenance import Maintenance
from penstock.ledger.membership import Membership
from penstock.ledger.merges import Merges
from penstock.ledger.page_queries import Panels
from penstock.ledger.pipelines import Pipelines
from penstock.ledger.rebuilds import Rebuilds
from penstock.ledger.skips import Skips
from penstock.ledger.tables import Tables
from penstock.ledger.verifications import Verifications
from penstock.ledger.windows import Windows


class Ledger(
    Pipelines,
    Windows,
    Skips,
    Tables,
    Membership,
    Rebuilds,
    Merges,
    Marks,
    Verifications,
    Changelogs,
    Health,
    Journal,
    Panels,
    Holding,
    Maintenance,
):
    """Remember pipelines, windows, tables, copies, cuts, samples, alarms and events: a control database's `penstock`.

    Nothing is contacted before the first call. Every call may raise LedgerError("ledger-unreachable") and
    LedgerError("ledger-not-migrated"); the calls of one thread within `session()` share a connection.
    """

    def migrate(self) -> str:
        """Bring the schema to this code's revision and return it; a second call, even at once, does no harm."""
        from penstock.ledger.migrate import upgrade  # noqa: PLC0415  # SQLAlchemy takes a second, only this needs it

        upgrade(self.connection)
        return self.version()

"""The ledger: the control schema in PostgreSQL. It is the truth about capture; the lake is the truth about merge.

It has one part per subject, and one method per thing that happens. Every method is one transaction.
"""

from collections.abc import Mapping

from penstock.config.connections import Connection
from penstock.ledger.advisory_lock import AdvisoryLocks, new_attempt
from penstock.ledger.changelogs import Changelogs
from penstock.ledger.events import Events, Summaries
from penstock.ledger.health import SlotHealth
from penstock.ledger.loads import Loads
from penstock.ledger.maintenance import Maintenance
from penstock.ledger.merges import Barriers, Merges
from penstock.ledger.page import PageQueries
from penstock.ledger.pipelines import Pipelines
from penstock.ledger.session import Sessions
from penstock.ledger.shapes import Shapes
from penstock.ledger.tables import Membership, Tables
from penstock.ledger.verifications import Verifications
from penstock.ledger.windows import Windows
from penstock.ledger.work import Outcomes, Work

__all__ = ["Ledger", "new_attempt"]


class Ledger(Sessions):
    """Remember pipelines, windows, tables, copies, cuts, samples, alarms and events: a control database's `penstock`.

    Nothing is contacted before the first call. Every call may raise LedgerError("ledger-unreachable") and
    LedgerError("ledger-not-migrated"); the calls of one thread within `session()` share a connection.
    `task` is the task of Airflow that is at work, as {dag, run_id, task}: it signs what it writes.
    """

    def __init__(self, connection: Connection, task: Mapping[str, str] | None = None) -> None:
        super().__init__(connection, task)
        self.pipelines = Pipelines(self)
        self.tables = Tables(self)
        self.windows = Windows(self)
        self.shapes = Shapes(self)
        self.membership = Membership(self)
        self.merges = Merges(self)
        self.barriers = Barriers(self)
        self.loads = Loads(self)
        self.events = Events(self)
        self.maintenance = Maintenance(self)
        self.page = PageQueries(self)
        self.locks = AdvisoryLocks(self)
        self.health = SlotHealth(self)
        self.outcomes = Outcomes(self)
        self.summaries = Summaries(self)
        self.verifications = Verifications(self)
        self.changelogs = Changelogs(self)
        self.work = Work(self)

    def migrate(self) -> str:
        """Bring the schema to this code's revision and return it; a second call, even at once, does no harm."""
        from penstock.ledger.migrate import upgrade  # noqa: PLC0415  # SQLAlchemy takes a second, only this needs it

        upgrade(self.connection)
        return self.version()

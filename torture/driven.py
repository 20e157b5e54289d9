"""The pipeline as its DAGs drive it: every error does what its kind says, and one that no fault explains is a finding.

Captures and merges are retried as Airflow retries them; a halted pipeline is resumed or recovered as its runbook says;
paused tables and those that joined are copied again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from penstock.conditions import Directive
from penstock.errors import PenstockError
from penstock.flow.capture import run as capture
from penstock.flow.context import Context
from penstock.flow.guards import record_errors
from penstock.flow.load import run as rebuild
from penstock.flow.load.read import catalog_now
from penstock.flow.load.resync import fit_to_copy
from penstock.flow.maintain import run as maintain
from penstock.flow.merge import run as merge
from penstock.flow.recover import resume
from penstock.flow.recover import run as recover
from penstock.flow.sequences import RECOVERY, carry_out
from penstock.flow.spark_job import SparkJob
from penstock.ledger.table_records import TableRecord
from tests.pipeline_env import PipelineEnv
from torture.report import Report

TRIES = 4
PATIENCE = 3
"""Rounds that a table may take to come back."""
EXPECTED = frozenset({"slot-ahead", "slot-missing", "slot-lost", "source-changed"})
"""Halts that a consumed slot explains."""

Submit = Callable[[SparkJob], None]


@dataclass
class Driven:
    """Drive one pipeline; `unblock` ends what it waits for, `identify` gives a table a replica identity.

    `consumed` says that a fault has taken changes from its slot.
    """

    env: PipelineEnv
    report: Report
    unblock: Callable[[], None]
    identify: Callable[[str], None]
    consumed: bool = False
    waiting: dict[str, int] = field(default_factory=dict)
    refused: Directive | None = None

    @property
    def ctx(self) -> Context:
        """Return a fresh context."""
        return self.env.ctx

    def capture(self) -> bool:
        """Capture until caught up; return whether it worked."""
        return self._tried("capture", lambda: capture.capture(self.ctx))

    def merge(self, *, force: bool = False) -> bool:
        """Merge and publish what is due; return whether it worked."""
        return self._tried("merge", lambda: merge.merge(self.ctx, self.env.submit, force=force))

    def maintain(self) -> bool:
        """Maintain lake, landing zone and ledger."""
        return self._tried("maintain", lambda: maintain.maintain(self.ctx, self.env.submit))

    def resync(self, tables: Sequence[str], submit: Submit | None = None) -> bool:
        """Copy tables again and switch them; those that joined by themselves, since they may have to wait."""
        known = self.ctx.ledger.tables.all(self.env.name)
        joined = {table.qualified for table in known if table.waits}
        parts = [[table for table in tables if (table in joined) is late] for late in (False, True)]
        return all([self._together(part, submit) for part in parts if part])  # noqa: C419  # every part has its try

    def answer(self, submit: Submit) -> bool:
        """Do what the DAG does for tables that changed: fetch where columns are all that they lack, copy the others, switch."""
        try:
            with record_errors(self.ctx):
                rebuild.switch(self.ctx, rebuild.resync(self.ctx, None, submit, woken=True), self.env.submit)
        except PenstockError as error:
            self.report.refused[error.slug] += 1
            self.report.write_line("penstock", "answer", f"{error}")
            return False
        except Exception as error:  # whatever Spark raises: an error without a name is a finding
            self.report.find("stuck", "answer", (f"{type(error).__name__}: {str(error)[:600]}",))
            return False
        self.report.work["answer"] += 1
        self.report.write_line("penstock", "answer")
        return True

    def _together(self, tables: Sequence[str], submit: Submit | None) -> bool:
        """Copy tables in one request, or one by one where one of them cannot be copied."""
        if self._resynced(tables, submit):
            return True
        if len(tables) == 1 or self.refused is Directive.RETRY:
            return False
        return all([self._resynced([table], None) for table in tables])  # noqa: C419

    def due(self) -> list[str]:
        """Name the tables that are to be copied: paused ones, and those that joined."""
        found = self.ctx.ledger.tables.all(self.env.name)
        return [table.qualified for table in found if table.state in ("paused", "new")]

    def heal(self) -> None:
        """Bring a halted pipeline back, as its runbook says."""
        record = self.ctx.ledger.pipelines.get(self.env.name)
        if record.state not in ("halted", "bootstrapping") and not self.consumed:
            return
        if record.state == "halted" and not (self.consumed and record.halted_slug in EXPECTED):
            self.report.find("stuck", "pipeline", (f"halted by {record.halted_slug}: {record.halted_reason}",))
        recovered = self._tried("recover", self._recover)
        # a server that was stopped hard may have forgotten that its slot was consumed: then nothing is lost
        if not recovered and self.ctx.ledger.pipelines.get(self.env.name).state == "halted":
            self._tried("resume", lambda: resume.resume(self.ctx))
        self.consumed = False

    def note_paused(self) -> None:
        """Count the tables that are paused now, by reason."""
        for table in self.ctx.ledger.tables.all(self.env.name):
            if table.state == "paused":
                self.report.paused[table.paused_slug or "?"] += 1
                self.report.write_line(
                    "penstock", f"paused {table.qualified}", f"[{table.paused_slug}] {table.paused_reason}"
                )

    def note_stuck(self) -> None:
        """Find tables that take longer than they may to be ready, though a copy would make them right.

        The others wait for a replica identity, which a person gives and the next one takes away again.
        """
        found: list[TableRecord] = [
            table
            for table in self.ctx.ledger.tables.all(self.env.name)
            if table.state not in ("ready", "dropped") and table.left_lsn is None
        ]
        found = fit_to_copy(self.ctx, found, catalog_now(self.ctx))
        self.waiting = {table.qualified: self.waiting.get(table.qualified, 0) + 1 for table in found}
        for table in found:
            if self.waiting[table.qualified] == PATIENCE:
                why = f"{table.state} for {PATIENCE} rounds: [{table.paused_slug}] {table.paused_reason}"
                self.report.find("stuck", table.qualified, (why,))

    def _resynced(self, tables: Sequence[str], submit: Submit | None) -> bool:
        try:
            with record_errors(self.ctx):
                known = {
                    table.qualified for table in self.ctx.ledger.tables.all(self.env.name) if table.state != "dropped"
                }
                wanted = [table for table in tables if table in known]
                if not wanted:
                    return True
                ids = rebuild.resync(self.ctx, wanted, submit or self.env.submit)
                self.report.work["resync"] += 1
                done = rebuild.switch(self.ctx, ids, self.env.submit)
                self.report.write_line("penstock", f"resync {', '.join(wanted)}", "" if done else "not switched yet")
                return done
        except PenstockError as error:
            self.refused = error.directive
            self.report.refused[error.slug] += 1
            self.report.write_line("penstock", f"resync {', '.join(tables)}", f"{error}")
            if error.slug == "no-usable-identity" and len(tables) == 1:
                self.identify(tables[0])
        except Exception as error:  # whatever Spark raises: an error without a name is a finding
            self.report.find("stuck", tables[0], (f"resync: {type(error).__name__}: {str(error)[:600]}",))
        return False

    def _recover(self) -> None:
        try:
            recover.start(self.ctx, dry_run=False)
        except PenstockError as error:
            if error.slug != "slot-exists" or not self.consumed:
                raise
            # one that was consumed may begin beyond what was read: its owner drops it, as the message says
            self.env.sql(f"select pg_drop_replication_slot('{self.ctx.pipeline.slot}')")
            recover.start(self.ctx, dry_run=False)
        carry_out(self.ctx, RECOVERY, self.env.submit)

    def _tried(self, verb: str, work: Callable[[], object]) -> bool:
        """Do it as a task with retries would; what fails at every try without a halt is stuck."""
        said = ""
        for number in range(TRIES):
            try:
                with record_errors(self.ctx):
                    work()
            except PenstockError as error:
                said = str(error)
                self.report.write_line("penstock", verb, said)
                if error.directive is Directive.HALT or error.slug in ("nothing-to-recover", "pipeline-halted"):
                    return False
                self.report.retried[error.slug] += 1
                if error.directive is not Directive.RETRY:
                    break
            except Exception as error:  # whatever Spark raises
                said = f"{type(error).__name__}: {str(error)[:800]}"
                self.report.write_line("penstock", verb, said)
                self.report.retried[type(error).__name__] += 1
            else:
                self.report.work[verb] += 1
                self.report.write_line("penstock", verb)
                return True
            self.unblock()
            time.sleep(number)
        self.report.find("stuck", verb, (said[:1200],))
        return False

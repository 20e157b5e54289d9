"""What the source's event trigger would log of a migration: in a scratch database it writes a table instead of the WAL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from penstock.contract import ddl_message
from penstock.contract.table_state import FileBefore
from penstock.errors import SourceError
from penstock.flow.context import Context
from penstock.flow.schema.rewritten import Rewritten, open_case
from penstock.ledger.table_records import TableRecord
from penstock.lsn import Lsn
from penstock.shapes.ddl_log import read_rewrites, rewritten_files
from penstock.shapes.plan import Plan
from penstock.shapes.source_table import SourceTable
from penstock.shapes.steps import Policy
from penstock.shapes.timeline import History, column_look
from penstock.source import ddl_trigger
from penstock.source.session import SourceSession
from penstock.wire.columnar import DdlEvent


@dataclass(frozen=True, slots=True)
class DdlLog:
    """Hold what the source's event trigger would log of a migration, by table, and its token, None where it may miss commands."""

    token: str | None = None
    ddl_events: Mapping[int, Sequence[DdlEvent]] = field(default_factory=dict)
    ddl_gaps: int = 0

    def plan(self, record: TableRecord, tables: Sequence[SourceTable], policy: Policy, decided: Plan) -> Plan:
        """Return the plan where the log says that a rewrite has kept all values, else as it was decided.

        `tables` are those of the two looks.
        """
        case = open_case(Rewritten(record, tables[-1], policy, frozenset(), decided, Lsn(0)))
        if case is None:
            return decided
        looks = [replace(column_look(table), trigger=self.token) for table in tables]
        rewrites = read_rewrites(
            History(looks, None, self.ddl_events.get(record.oid, ()), self.ddl_gaps), case.before(), case.versions
        )
        kept = rewrites.complete and not rewrites.doubtful
        return case.best() if kept and self._files_explained(case) else decided

    def _files_explained(self, case: Rewritten) -> bool:
        """Return whether the log says of each partition how it came to its file; these have no row that could show more."""
        return case.now.kind != "p" or rewritten_files(*case.files(), self.token, self.ddl_events) is not None


def listen(ctx: Context, conn: SourceSession) -> tuple[str | None, list[str]]:
    """Install the event trigger in the scratch database where the source has it; return its token, and what to know."""
    if not ctx.pipeline.source.ddl_trigger:
        return None, []
    try:
        ddl_trigger.record(conn)
    except SourceError as error:
        return None, [f"tried as without the event trigger, which the scratch database did not take: {error.message}"]
    return ddl_trigger.read_trigger(conn).token, []


def read_log(conn: SourceSession, token: str | None) -> DdlLog:
    """Read what was logged since `listen`; raises SourceError."""
    if token is None or ddl_trigger.read_trigger(conn).token != token:
        return DdlLog()
    states = [ddl_message.read_text(content) for content in ddl_trigger.recorded(conn)]
    events: dict[int, list[DdlEvent]] = {}
    rewritten: dict[int, FileBefore] = {}
    for state in states:
        if isinstance(state, FileBefore):
            rewritten[state.oid] = state
        elif state is not None:
            events.setdefault(state.oid, []).append(DdlEvent(state, 0, rewritten.pop(state.oid, None)))
    return DdlLog(token, events, states.count(None))

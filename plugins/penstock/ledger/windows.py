"""A window's life: planned -> staged -> confirmed, one after the other without a gap.

Only the newest attempt of the window that starts exactly at the pipeline's position can be staged, so two
captures at once, a killed one and one that woke up late cannot lose or repeat a change.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from psycopg.types.range import Range

from penstock.contract.manifest import FileEntry, moment
from penstock.errors import LedgerError
from penstock.ledger.loads import BUILDS, loads
from penstock.ledger.pipelines import find, lock, lock_active
from penstock.ledger.records import PipelineRecord, Row, SkippedRecord, WindowRecord, WindowState
from penstock.ledger.session import Part, Statements, recordset
from penstock.ledger.shapes import add_relations, keep_logged
from penstock.ledger.table_records import LoadRecord, TableRecord
from penstock.ledger.tables import tables as tables_of
from penstock.lsn import Lsn
from penstock.shapes.known_shape import KnownShape
from penstock.shapes.timeline import RelationMapping
from penstock.wire.messages import Relation


@dataclass(frozen=True)
class WindowPace(Row):
    """Say what one window took: bytes of WAL that it spans, those that the server read for it from its restart point, and seconds."""

    wal_bytes: int
    read_bytes: int | None
    seconds: float


@dataclass(frozen=True, slots=True)
class LedgerSnapshot:
    """Hold what a look at the catalog is held against, all read at one moment: the pipeline, its tables, and what is built of them."""

    pipeline: PipelineRecord
    tables: tuple[TableRecord, ...]
    builds: tuple[LoadRecord, ...]


@dataclass(frozen=True, slots=True)
class WindowContent:
    """Hold what a window has landed: files, and relations by (oid, version), with what their columns are where the catalog was asked.

    `logged` are the shapes that the source's event trigger logged last, by the table's oid; `missed`: it may have missed something. The
    window of a transaction that the source cannot decode, which is `skipped`, is empty.
    """

    files: Sequence[FileEntry]
    relations: Mapping[tuple[int, int], Relation]
    transactions: int
    messages: int
    mappings: Mapping[tuple[int, int], RelationMapping] = field(default_factory=dict)
    logged: Mapping[int, KnownShape] = field(default_factory=dict)
    missed: bool = True
    skipped: SkippedRecord | None = None


class Windows(Part):
    """Record windows."""

    def plan(
        self,
        name: str,
        *,
        from_lsn: Lsn,
        upto_lsn: Lsn,
        attempt: str,
        source_time: datetime | None,
        settings_digest: str,
        oldest_xid: int | None = None,
        read_from: Lsn | None = None,
    ) -> WindowRecord:
        """Note which window this attempt will capture, to the next barrier at most; a dead attempt at it is replaced.

        Every transaction below `oldest_xid` had ended when the catalog was looked at before; the server reads WAL from
        `read_from` on.

        Raises LedgerError: "ledger-conflict" (the pipeline stands elsewhere by now), "pipeline-halted",
        "not-bootstrapped".
        """
        facts = {
            "upto_lsn": upto_lsn,
            "source_time": source_time,
            "settings_digest": settings_digest,
            "oldest_xid": oldest_xid,
            "read_from": read_from,
        }
        with self.transaction() as transaction:
            known = lock_active(transaction, name)
            if not transaction.change("windows/plan_window", name=name, from_lsn=from_lsn, attempt=attempt, **facts):
                raise moved(name, from_lsn, known.position)
            (window,) = windows(transaction, name, from_lsn=from_lsn)
            return window

    def snapshot(self, name: str, *, but: Collection[int] = ()) -> LedgerSnapshot:
        """Return what is known of a pipeline, its tables, `but` some, and the builds that hold rows; raises LedgerError("not-bootstrapped")."""
        with self.transaction(frozen=True) as transaction:
            built = loads(transaction, name, BUILDS, states=["building", "ready"])
            return LedgerSnapshot(find(transaction, name), tuple(tables_of(transaction, name, but=but)), tuple(built))

    def looked_xid(self, name: str) -> int | None:
        """Return below which id all transactions had ended when the catalog was last looked at, or None before any window."""
        return next((xid for (xid,) in self.rows("windows/looked_xid", name=name)), None)

    def recent(self, name: str, limit: int) -> list[WindowPace]:
        """Return what the newest windows took, newest first."""
        return self.records(WindowPace, "windows/recent_windows", name=name, limit=limit)

    def complete_time(self, name: str, upto: Lsn) -> datetime | None:
        """Return the latest time of the source by which all that was committed lies at or before `upto`, if known."""
        return next((time for (time,) in self.rows("windows/complete_time", name=name, upto=upto)), None)

    def stage(
        self,
        name: str,
        *,
        from_lsn: Lsn,
        attempt: str,
        content: WindowContent,
        digest: str,
        seconds: float,
    ) -> WindowRecord:
        """Make the window exist: its content, and the pipeline's new position.

        Staging the same attempt again returns the window. Raises LedgerError: "ledger-conflict" (another attempt or
        another window is due), "pipeline-halted", "not-bootstrapped".
        """
        files, skipped = content.files, content.skipped
        totals = {
            "rows": sum(file.rows for file in files),
            "bytes": sum(file.bytes for file in files),
            "max_xid": max((file.max_xid for file in files if file.max_xid is not None), default=None),
        }
        with self.transaction() as transaction:
            known = lock_active(transaction, name)
            changed = transaction.change(
                "windows/stage_window",
                name=name,
                from_lsn=from_lsn,
                attempt=attempt,
                files=recordset(files),
                committed=_committed(files) if skipped is None else Range(skipped.since, skipped.until, "[]"),
                transactions=content.transactions,
                messages=content.messages,
                digest=digest,
                seconds=seconds,
                **totals,
            )
            window = next(iter(windows(transaction, name, from_lsn=from_lsn)), None)
            if window is None or window.attempt != attempt or window.state == "planned":
                raise moved(name, from_lsn, known.position)
            if changed:
                add_relations(transaction, name, content.relations, content.mappings, from_lsn)
                keep_logged(transaction, name, content.logged, window.upto_lsn, missed=content.missed)
                if skipped is not None:
                    transaction.change("windows/add_skipped", name=name, **vars(skipped))
            return window

    def confirm(self, name: str, *, through: Lsn) -> int:
        """Note that the slot was advanced to `through`; return how many staged windows that confirms.

        Raises LedgerError("ledger-conflict") when something was confirmed that was never staged.
        """
        with self.transaction() as transaction:
            known = lock(transaction, name)
            if known.position is None or through > known.position:
                raise LedgerError(
                    "ledger-conflict",
                    f"expected the slot of {name} at or before {known.position}, where the ledger stands, got "
                    f"{through} instead; another session may have consumed changes: capture will say so",
                )
            return transaction.change("windows/confirm_windows", name=name, through=through)

    def all(self, name: str, *, after: Lsn | None = None, state: WindowState | None = None) -> list[WindowRecord]:
        """Return the windows of the present era that end after a position, in order."""
        return windows(self, name, after=after, states=None if state is None else [state])

    def skipped(self, name: str) -> list[SkippedRecord]:
        """Return the transactions of the present era that no window has, in order."""
        return self.records(SkippedRecord, "windows/skipped", name=name, from_time=None, upto_time=None)

    def newest_xid(self, name: str) -> int | None:
        """Return the highest 64-bit transaction id that the newest windows of the present era brought, if any did."""
        ((xid,),) = self.rows("windows/newest_xid", name=name)
        return None if xid is None else int(xid)


def windows(
    ledger: Statements,
    name: str,
    *,
    from_lsn: Lsn | None = None,
    after: Lsn | None = None,
    through: Lsn | None = None,
    states: Sequence[str] | None = None,
    committed: tuple[datetime | None, datetime | None] = (None, None),
    past: bool | None = False,
) -> list[WindowRecord]:
    """Return the windows of this era, of all `past` ones, or of all, that meet every condition given, in order.

    `committed` are times between which one of a window's transactions may have committed.
    """
    since, before = committed
    bounds = {"from_lsn": from_lsn, "after": after, "through": through, "since": since, "before": before}
    return ledger.records(WindowRecord, "windows/windows", name=name, states=states, past=past, **bounds)


def _committed(files: Sequence[FileEntry]) -> Range[datetime]:
    """Return the times at which the transactions of these files committed: all times if one file does not say."""
    spans = [(file.min_committed_at, file.max_committed_at) for file in files if file.rows]
    if not spans:
        return Range(empty=True)
    known = [(low, high) for low, high in spans if low is not None and high is not None]
    if len(known) < len(spans):
        return Range(None, None, "()")
    return Range(_bound(min(low for low, _ in known)), _bound(max(high for _, high in known)), "[]")


def _bound(microseconds: int) -> datetime | None:
    """Return a bound of commit times; a time that an origin has made up may be beyond what a datetime holds."""
    try:
        return moment(microseconds)
    except OverflowError:
        return None


def moved(name: str, from_lsn: Lsn, position: Lsn | None) -> LedgerError:
    """Return the error of an attempt that is not due: the pipeline stands elsewhere by now."""
    return LedgerError(
        "ledger-conflict",
        f"expected this attempt's window to be the next one of {name}, from {from_lsn}, but the pipeline stands at "
        f"{position} or another attempt has planned it; another run is at work: start over from its position",
    )

"""Notice, once per window, what changed in a table's catalog entries and the stream does not carry.

PostgreSQL emits nothing for most DDL. An added column is followed, with the value that old rows show; any other
change pauses that one table with the reason, while capture and all other tables continue. Where the catalog alone
cannot say it, a bounded look at the rows does, or the window's own messages; what stays unknown pauses the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import pyarrow.compute as pc

from penstock.contract.table_state import TableStates
from penstock.errors import LedgerError, SourceError
from penstock.flow import table_policy
from penstock.flow.capture import enum_labels, gone_partitions, relation_columns, told_columns
from penstock.flow.capture.column_changes import ADDED_ONLY, Following
from penstock.flow.capture.gone_partitions import GONE
from penstock.flow.capture.land_window import Landed
from penstock.flow.capture.table_verdict import (
    Verdict,
    altered_with_its_rows,
    suspects,
    vanished_partition,
    verdict,
)
from penstock.flow.capture.told_columns import History
from penstock.flow.context import Context
from penstock.flow.snapshot import Snapshot
from penstock.flow.table_facts import column_look, facts_of
from penstock.ledger.records import (
    FetchRecord,
    RebuildRecord,
    RelationNumbers,
    SchemaChange,
    TableFacts,
    TableRecord,
    TableState,
    WindowRecord,
)
from penstock.lsn import Lsn
from penstock.source import leaf_rows, server_info
from penstock.source.catalog_snapshot import CatalogSnapshot
from penstock.source.session import SourceSession
from penstock.source.tables import Leaf, SourceTable

Known = TableRecord | RebuildRecord
Numbers = Mapping[tuple[int, int], RelationNumbers]
"""Which of the catalog's columns landed relations have, by oid and version; without those that nobody looks at."""
WATCHED: tuple[TableState, ...] = ("new", "copying", "copied", "ready")


@dataclass(frozen=True, slots=True)
class Undecided:
    """Hold a table with new files that the stream may explain up to `through`: by a TRUNCATE of it, or by its silence.

    `leaves` names those leaves with the transaction that gave each its file; `empty` the partitions that are new and hold
    nothing, with the place up to which the stream must bring nothing of them either.
    """

    known: Known
    now: SourceTable
    following: Following
    cleared: frozenset[int]
    leaves: Mapping[int, int]
    empty: Mapping[int, Lsn]
    through: Lsn

    def verdict(
        self, explained: Iterable[int], unused: Iterable[int], emptied: Mapping[int, str] | None = None
    ) -> Verdict:
        """Return the verdict if the stream has explained these leaves, and brings nothing of those that are `unused`."""
        return _verdict(
            self.known, self.now, self.following, self.cleared | set(explained), unused=unused, emptied=emptied
        )

    def best(self) -> Verdict:
        """Return the verdict if the stream explains everything, but for partitions that are gone: these wait for the others."""
        found = self.verdict(self.leaves, self.empty)
        changes = tuple(change for change in found.changes if change.rule != "drop-partition")
        return replace(found, changes=changes, gone=())

    def digest(self, heard: Iterable[int] = ()) -> dict[str, Any]:
        """Return the digest of now, but of the undecided and missing leaves that of before, and until when they wait.

        `heard` are those of which the stream has brought something meanwhile.
        """
        digest, before = self.now.digest(), self.known.catalog_digest["leaves"]
        open_ = {**dict.fromkeys(self.leaves, self.through), **self.empty}
        undecided = {str(oid) for oid in open_}
        known = {oid: before[oid] for oid in undecided & before.keys()}  # a leaf that is new stays new
        leaves = {
            oid: known.get(oid, now) for oid, now in digest["leaves"].items() if oid not in undecided - known.keys()
        }
        gone = (
            {oid: entry for oid, entry in before.items() if oid not in digest["leaves"]} if self.now.kind == "p" else {}
        )
        seen = {**self.known.catalog_digest["versions"]["leaves"], **digest["versions"]["leaves"]}
        leaves |= gone
        versions = {**digest["versions"], "leaves": {oid: seen[oid] for oid in leaves}}
        waiting = {str(oid): str(through) for oid, through in open_.items()}
        all_heard = {*self.known.catalog_digest.get("heard", ()), *heard}
        return {
            **digest,
            "leaves": leaves,
            "versions": versions,
            "undecided": waiting,
            **({"heard": sorted(all_heard)} if all_heard else {}),
        }


@dataclass(frozen=True, slots=True)
class Look:
    """Hold what a look at the catalog has found, and the tables that the window's messages may decide.

    `unchanged` are the published tables that are as the ledger has them.
    """

    found: Mapping[int, SourceTable]
    undecided: tuple[Undecided, ...]
    unchanged: frozenset[int] = frozenset()


def looked(ctx: Context) -> dict[int, str]:
    """Return the stamps of the tables that were as the ledger has them at an earlier look, and are while they keep it."""
    return ctx.ledger.tables.looked(ctx.name, WATCHED)


def follow(ctx: Context, conn: SourceSession, snapshot: CatalogSnapshot, trigger: str | None = None) -> Look:
    """Hold the source's tables against the ledger's: save added columns, pause what changed otherwise.

    `trigger` is the token of the source's event trigger as it was no later than the look, empty where that may miss commands.
    """
    now = snapshot.by_oid
    cases: list[Undecided] = []
    place = cache(lambda: server_info.sight(conn).lsn)  # after the look, and so after whatever a lost partition took
    if now or trigger is not None:
        ctx.ledger.tables.note_column_looks(
            ctx.name,
            {oid: column_look(table) for oid, table in now.items()},
            seen_lsn=server_info.flushed(conn),
            trigger=trigger,
            unchanged=snapshot.unchanged,
        )
    for record in ctx.ledger.tables.all(ctx.name, but=snapshot.unchanged):
        if record.state in WATCHED and record.left_lsn is None and record.oid in now:
            cases += _follow(ctx, conn, record, now[record.oid], place)
    for rebuild in ctx.ledger.rebuilds.all(ctx.name, states=["building", "ready"]):
        if rebuild.kind != "shadow":
            cases += _follow(ctx, conn, rebuild, now.get(rebuild.oid), place)
    if stamped := {oid: (snapshot.stamps[oid], table.digest()) for oid, table in now.items() if oid in snapshot.stamps}:
        ctx.ledger.tables.note_looked(ctx.name, stamped, WATCHED)
    return Look(now, tuple(cases), snapshot.unchanged)


def settle(ctx: Context, conn: SourceSession, look: Look, landed: Landed, window: WindowRecord) -> Numbers:
    """Hold what a window brought against the catalog, before it is staged: decide what was left open, pause what does not fit.

    Return which of the catalog's columns the landed relations have.
    """
    fetches = ctx.ledger.fetches.all(ctx.name, after=window.from_lsn)
    brought = _Brought(landed, _numbers(ctx, landed, window.from_lsn), window.from_lsn, window.upto_lsn, fetches)
    for case in look.undecided:
        _settle(ctx, conn, case, landed, window.upto_lsn)
    touched = {oid for oid, _ in landed.relations} | {part.root for part in landed.totals.partitions}
    for record in ctx.ledger.tables.all(ctx.name, but=look.unchanged - touched):
        if record.state in ("copied", "ready") and record.left_lsn is None:
            _settle_landed(ctx, record, look, brought)
    return brought.numbers


@dataclass(frozen=True, slots=True)
class _Brought:
    """Hold what a window brought, with what its relations' columns are."""

    landed: Landed
    numbers: Numbers
    since: Lsn
    upto: Lsn
    fetches: Sequence[FetchRecord]

    def attnums(self, shape: tuple[int, int]) -> tuple[int, ...] | None:
        """Return the attnums of a relation version's columns, if they are known."""
        known = self.numbers.get(shape)
        return known.attnums if known else None

    def overwritten(self, shape: tuple[int, int]) -> frozenset[int]:
        """Return the columns of which every row's value was fetched after all that the window brought of a relation version."""
        landed = (file for file in self.landed.files if (file.oid, file.version) == shape)
        last = max((file.max_commit_lsn for file in landed if file.max_commit_lsn is not None), default=None)
        return relation_columns.overwritten(self.fetches, shape[0], last)


def _numbers(ctx: Context, landed: Landed, since: Lsn) -> Numbers:
    """Read the columns of the landed relations by the looks at their tables that were before and after."""
    if not landed.shapes:
        return {}
    looks = ctx.ledger.windows.column_looks(ctx.name, landed.shapes, since=since)
    listens = ctx.pipeline.source.ddl_trigger
    before = ctx.ledger.windows.table_states(ctx.name, landed.shapes) if listens else {}
    totals, complete = landed.totals, ctx.pipeline.source.origin == "any"
    histories = {
        oid: History(looks[oid], before.get(oid), totals.told.get(oid, ()), totals.lapses, complete)
        if listens
        else History(looks[oid])
        for oid in landed.shapes
        if oid in looks
    }
    return {
        (oid, version): relation_columns.numbers(
            relation, told_columns.read(relation, landed.after[oid, version], histories[oid]), looks[oid]
        )
        for (oid, version), relation in landed.relations.items()
        if oid in histories
    }


def told_states(ctx: Context, landed: Landed) -> TableStates | None:
    """Return what the source's event trigger told last of each table, None where the pipeline does not listen."""
    if not ctx.pipeline.source.ddl_trigger:
        return None
    totals = landed.totals
    last = [told[-1].state for told in totals.told.values() if told[-1].lapses == totals.lapses]
    return TableStates(last, lapsed=totals.lapses > 0)


def _settle_landed(ctx: Context, record: TableRecord, look: Look, brought: _Brought) -> None:
    now = look.found.get(record.oid)
    if now is None and record.oid not in look.unchanged:
        return
    reason = (
        _misfit(record, now, brought)
        or _gone_misfit(ctx, record, brought)
        or (now and _renamed_label(ctx, record, now, brought))
    )
    if reason and not _copied_since(ctx, record, brought.upto):
        _refuse(ctx, record, reason)
    elif now is not None:
        _end_checks(ctx, record, brought.upto)


def _follow(
    ctx: Context, conn: SourceSession, known: Known, now: SourceTable | None, place: Callable[[], Lsn]
) -> list[Undecided]:
    """Take over what can be followed, refuse the rest, and return the table where the stream has to decide."""
    cleared = frozenset() if now is None else _cleared(ctx, conn, known, now)
    following = followed_of(ctx, known)
    decided = _verdict(known, now, following, cleared)
    case = None if now is None or decided.reason is None else _undecided(conn, known, now, following, cleared)
    if case is not None:
        _take(ctx, known, case.best(), case.digest())
        return [case]
    if decided.reason is not None:
        _refuse(ctx, known, decided.reason, decided.slug, fetchable=decided.fetch is not None)
    elif now is not None:
        digest = _digest(conn, known, now)
        if decided.gone:
            digest = _let_go(ctx, known, decided, digest, place())
        _take(ctx, known, decided, digest)
    return []


def _let_go(ctx: Context, known: Known, decided: Verdict, digest: Mapping[str, Any], lsn: Lsn) -> dict[str, Any]:
    """Make a cut due at which the rows of partitions that are gone go, and return the digest that says which go or stay."""
    names = ", ".join(each.name for each in decided.gone if not each.kept)
    if names and not ctx.ledger.barriers.add(ctx.name, lsn, reason=f"rows of {names} go from {known.qualified}"):
        raise LedgerError(
            "ledger-conflict",
            f"expected {ctx.name} to stand before {lsn}, but a window is planned beyond it; another run is at work: start over",
        )
    through = known.complete_through if isinstance(known, TableRecord) else None
    gone = (replace(each, lsn=lsn) for each in decided.gone)
    return {**digest, GONE: gone_partitions.with_gone(known.catalog_digest, gone, through)}


def _digest(conn: SourceSession, known: Known, now: SourceTable) -> dict[str, Any]:
    """Return the digest of now, with the enums that landed labels have to be held against, and until when."""
    waiting = dict(known.catalog_digest.get("grown", {}))
    if more := enum_labels.grown(known.catalog_digest, now):
        waiting |= dict.fromkeys(map(str, more), str(server_info.flushed(conn)))
    return {**now.digest(), "grown": waiting} if waiting else now.digest()


def _verdict(
    known: Known,
    now: SourceTable | None,
    following: Following,
    cleared: Iterable[int],
    *,
    unused: Iterable[int] = (),
    emptied: Mapping[int, str] | None = None,
) -> Verdict:
    facts = (known.columns, known.identity, known.catalog_digest)
    return verdict(*facts, now, cleared, unused=unused, emptied=emptied or {}, following=following)


def followed_of(ctx: Context, known: Known) -> Following:
    """Return what is followed of a table: only one that readers see can be changed as it is, any other is copied again."""
    if not isinstance(known, TableRecord) or known.state != "ready":
        return ADDED_ONLY
    if table_policy.on_change(ctx.pipeline, known.schema, known.name) != "follow":
        return ADDED_ONLY
    return Following(
        keep_dropped=ctx.pipeline.lake.on_dropped_column == "keep",
        partitions=ctx.pipeline.lake.on_dropped_partition,
    )


def _refuse(ctx: Context, known: Known, reason: str, slug: str = "schema-change", *, fetchable: bool = False) -> None:
    """Pause a table, for a fetch of columns if that is enough; end a rebuild, which has to begin again."""
    if isinstance(known, TableRecord):
        ctx.ledger.tables.pause(ctx.name, known.oid, slug=slug, reason=reason, fetchable=fetchable)
        ctx.progress(f"paused {known.qualified}: {reason}")
    else:
        ctx.ledger.rebuilds.give_up(ctx.name, known, slug="rebuild-given-up", reason=reason)
        ctx.progress(f"gave up the {known.kind} of {known.qualified}: {reason}")


def _take(ctx: Context, known: Known, decided: Verdict, digest: Mapping[str, Any]) -> None:
    """Save what was added, and what the catalog looks like now, with the partitions whose rows go."""
    if GONE in known.catalog_digest:
        digest = {GONE: known.catalog_digest[GONE], **digest}
    if not decided.changes and digest == known.catalog_digest:
        return
    facts_now = _with(known, decided, digest)
    if isinstance(known, RebuildRecord):
        ctx.ledger.rebuilds.reshape(ctx.name, known.id, facts_now)
        return
    told = followed_changes(known.oid, decided) if known.state == "ready" else ()
    ctx.ledger.tables.save(ctx.name, [facts_now], told)
    for change in decided.changes:
        ctx.progress(f"{known.qualified}: {change.text}")


def followed_changes(oid: int, decided: Verdict) -> list[SchemaChange]:
    """Return what the lake follows by a verdict, for the history of the table's shapes."""
    return [
        SchemaChange(oid, change.rule, change.text, {"xid": change.xid} if change.xid else {})
        for change in decided.changes
    ]


def _cleared(ctx: Context, conn: SourceSession, known: Known, now: SourceTable) -> frozenset[int]:
    """Look at the rows of the leaves that the catalog leaves open, and name those that hide nothing."""
    suspected = suspects(known.columns, known.catalog_digest, now)
    cleared = {leaf.oid for leaf, since in suspected.arrived if _seen(leaf_rows.only_sent, conn, leaf, since)}
    oldest = ctx.ledger.windows.looked_xid(ctx.name) if suspected.files else None
    if oldest is not None:
        undecided = known.catalog_digest.get("undecided", {})  # for these the last look was not before the change
        sure = (leaf for leaf in suspected.files if str(leaf.oid) not in undecided)
        cleared |= {leaf.oid for leaf in sure if _seen(leaf_rows.kept, conn, leaf, oldest)}
    return frozenset(cleared)


def _seen(look: Callable[..., bool], conn: SourceSession, leaf: Leaf, what: object) -> bool:
    """Ask the rows; a leaf that cannot be looked at, or not in time, is not cleared."""
    try:
        return leaf.kind == "r" and look(conn, leaf, what)
    except SourceError:
        return False


def _undecided(
    conn: SourceSession, known: Known, now: SourceTable, following: Following, cleared: frozenset[int]
) -> Undecided | None:
    """Return the table where nothing but undecided leaves is against it, or None when there is more."""
    if altered_with_its_rows(known.columns, known.catalog_digest, now) or _digest(conn, known, now).get("grown"):
        return None
    suspected = suspects(known.columns, known.catalog_digest, now)
    files = [leaf for leaf in suspected.files if leaf.oid not in cleared]
    heard = known.catalog_digest.get("heard", ())
    blank = [
        leaf for leaf in suspected.rewritten if leaf.oid not in heard and _seen(leaf_rows.only_sent, conn, leaf, ())
    ]
    waiting = {int(oid): Lsn.parse(text) for oid, text in known.catalog_digest.get("undecided", {}).items()}
    # after the rows were looked at: what they were before is in the WAL up to here
    here = server_info.flushed(conn)
    case = Undecided(
        known,
        now,
        following,
        cleared,
        leaves={leaf.oid: leaf.changed_by for leaf in files},
        empty={leaf.oid: waiting.get(leaf.oid, here) for leaf in blank},
        through=min((waiting[leaf.oid] for leaf in (*files, *blank) if leaf.oid in waiting), default=here),
    )
    return case if (files or blank) and case.best().reason is None else None


def _settle(ctx: Context, conn: SourceSession, case: Undecided, landed: Landed, upto: Lsn) -> None:
    truncated = _truncations(ctx, landed, case.known.oid)
    heard = {part.oid for part in landed.totals.partitions} & case.empty.keys()
    explained = {oid for oid, xid in case.leaves.items() if xid in truncated}
    unused = [oid for oid, through in case.empty.items() if oid not in heard and upto >= through]
    decided = case.verdict(explained, unused)
    if decided.reason is not None and upto >= case.through and case.following.partitions is not None:
        decided = case.verdict(explained, unused, _emptied(conn, case, explained))
    if decided.reason is None:
        digest = case.now.digest()
        if decided.gone:
            digest = _let_go(ctx, case.known, decided, digest, server_info.sight(conn).lsn)
        _take(ctx, case.known, decided, digest)
    elif upto >= case.through:
        _refuse(ctx, case.known, decided.reason, decided.slug)
    elif heard:
        _take(ctx, case.known, case.best(), case.digest(heard))


def _emptied(conn: SourceSession, case: Undecided, explained: Set[int]) -> dict[int, str]:
    """Return the leaves that are empty though nothing says how they came to a new file, with the snapshots that show it."""
    known = case.known.catalog_digest["leaves"]
    open_ = (leaf for leaf in case.now.leaves if leaf.oid in case.leaves.keys() - explained and str(leaf.oid) in known)
    found = {leaf.oid: _ask_snapshot(conn, leaf) for leaf in open_}
    return {oid: snapshot for oid, snapshot in found.items() if snapshot is not None}


def _ask_snapshot(conn: SourceSession, leaf: Leaf) -> str | None:
    try:
        return leaf_rows.empty_in(conn, leaf) if leaf.kind == "r" else None
    except SourceError:
        return None


def _truncations(ctx: Context, landed: Landed, oid: int) -> set[int]:
    """Return the 32-bit ids of the transactions that truncated a table in a window."""
    found: set[int] = set()
    for entry in landed.files:
        if entry.oid == oid and entry.counts.truncates:
            changes = ctx.landing.columns(entry.path, ["op", "xid"])
            xids = changes.filter(pc.equal(changes["op"], "T"))["xid"].to_pylist()
            found |= {xid & 0xFFFFFFFF for xid in xids}
    return found


def _misfit(record: TableRecord, now: SourceTable | None, brought: _Brought) -> str | None:
    """Say why what a window brought of a table does not fit its columns, partitions or key; None is as the ledger has it."""
    landed = brought.landed
    shapes = [
        (relation, brought.numbers[key], brought.overwritten(key))
        for key, relation in landed.relations.items()
        if key[0] == record.oid and key in brought.numbers
    ]
    for relation, numbers, overwritten in shapes:
        if reason := relation_columns.fit(record, relation, numbers, overwritten).reason:
            return reason
    if (now.kind if now else record.catalog_digest["kind"]) != "p":
        return None
    keys = {column.attnum for column in record.columns if column.key}
    named = {
        sent.name
        for relation, numbers, _ in shapes
        for sent, attnum in zip(relation.columns, numbers.attnums or (), strict=bool(numbers.attnums))
        if attnum in keys
    }
    if named & landed.old_nulls.get(record.oid, frozenset()):
        return "old rows came without the table's key: a partition had another replica identity for a while"
    known = {*map(int, record.catalog_digest["leaves"]), *(leaf.oid for leaf in (now.leaves if now else ()))}
    known |= {each.oid for each in gone_partitions.noted(record.catalog_digest) if (each.lsn or 0) > brought.since}
    for part in landed.totals.partitions:
        if part.root == record.oid and part.oid not in known:
            return vanished_partition(part.name)
    return None


def _gone_misfit(ctx: Context, record: TableRecord, brought: _Brought) -> str | None:
    """Say why what a window brought cannot be told from the rows of partitions that are gone; None is as the ledger has it."""
    landed, digest = brought.landed, record.catalog_digest
    archive = ctx.pipeline.lake.on_dropped_partition == "keep" and any(gone_partitions.kept(digest))
    if archive and any(entry.oid == record.oid and entry.counts.truncates for entry in landed.files):
        return "the table was truncated, and the lake keeps rows of partitions that are gone, which would go with the others"
    taken = [part.oid for part in landed.totals.partitions if part.root == record.oid]
    for each, snapshot in gone_partitions.taken_again(digest, taken, brought.since):
        if snapshot is None or not _all_seen(ctx, record.oid, landed, Snapshot.parse(snapshot)):
            return f"rows came into the bounds of partition {each.name} again before the lake let its own go"
    return None


def _all_seen(ctx: Context, oid: int, landed: Landed, snapshot: Snapshot) -> bool:
    """Return whether a snapshot has seen all that a window brought of a table."""
    files = [entry.path for entry in landed.files if entry.oid == oid]
    xids = {xid for path in files for xid in ctx.landing.columns(path, ["xid"])["xid"].unique().to_pylist()}
    return all(map(snapshot.sees, xids))


def _renamed_label(ctx: Context, record: TableRecord, now: SourceTable, brought: _Brought) -> str | None:
    checks = enum_labels.open_checks(record.catalog_digest)
    ours = [entry for entry in brought.landed.files if entry.oid == record.oid and entry.rows] if checks else []
    files = {entry: brought.attnums((entry.oid, entry.version)) or () for entry in ours}
    return enum_labels.strange(ctx.landing, files, now, set(checks)) if files else None


def _end_checks(ctx: Context, record: TableRecord, upto: Lsn) -> None:
    """Forget the enums that no later window can bring under another label."""
    checks = enum_labels.open_checks(record.catalog_digest)
    waiting = {str(oid): str(through) for oid, through in checks.items() if through > upto}
    if len(waiting) < len(checks):
        rest = {key: value for key, value in record.catalog_digest.items() if key != "grown"}
        _take(ctx, record, Verdict(), {**rest, "grown": waiting} if waiting else rest)


def _copied_since(ctx: Context, record: TableRecord, upto: Lsn) -> bool:
    """Return whether the table's copy was taken after the window: then it holds what the window lacks."""
    copies = ctx.ledger.tables.copies(ctx.name)
    return any(each.id == record.copy_id and each.oid == record.oid and upto <= each.lsn for each in copies)


def _with(known: Known, decided: Verdict, digest: Mapping[str, Any]) -> TableFacts:
    return replace(
        facts_of(known),
        columns=decided.columns or known.columns,
        identity=decided.identity or known.identity,
        catalog_digest=dict(digest),
    )


def grown(known: TableRecord | RebuildRecord, decided: Verdict, now: SourceTable) -> TableFacts:
    """Return the facts of a table with the columns that were added to it."""
    return _with(known, decided, now.digest())

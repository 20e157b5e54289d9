"""What a replay is asked for, held against what is there: a copy, and every window that the copy had not seen.

A dry run prints this look line by line; bad input ends here, before any work.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from penstock.compare.lake_reader import lake_reader
from penstock.errors import ConfigError, LakeError
from penstock.flow.context import Context
from penstock.flow.guards import require_named, require_running
from penstock.flow.load.position import resolve_position
from penstock.flow.load.resync import not_ready, open_rebuilds
from penstock.flow.merge.table_plan import fitting, landed_relations, windows_due
from penstock.jobs.pointers import rebuilt
from penstock.ledger.loads import NewBuild
from penstock.ledger.records import SkippedRecord, WindowRecord
from penstock.ledger.table_records import LoadRecord, TableRecord
from penstock.lsn import Lsn
from penstock.shapes.accepted import TableFacts
from penstock.shapes.pg_snapshot import Snapshot
from penstock.units import several

_SUFFIX = re.compile(r"[A-Za-z0-9_]{1,60}")
_TAKEN_SUFFIX = "changelog"


@dataclass(frozen=True, slots=True)
class Replay:
    """Ask for a replay: of which tables, from which copy, and up to where.

    `from_` and `upto` are LSNs or times; without `from_` the newest copy is used, without `upto` all that is landed.
    `shadow` is the suffix of the tables to make; without it the tables are replaced in place.
    """

    tables: tuple[str, ...]
    from_: str | None = None
    upto: str | None = None
    shadow: str | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """Say what one table is built from, and where; `goal` is None for one that follows in place."""

    facts: TableFacts
    copied: LoadRecord
    windows: tuple[WindowRecord, ...]
    place: tuple[str, ...]
    goal: Lsn | None

    def order(self, rebuild_id: str, namespace: str) -> NewBuild:
        """Return the order to build it."""
        if self.goal is None:
            there = rebuilt(namespace, self.facts.target, rebuild_id)
            return NewBuild(rebuild_id, "replay", self.facts, there, self.copied.copy_id)
        return NewBuild(rebuild_id, "shadow", self.facts, self.place, self.copied.copy_id, self.goal)

    def line(self) -> str:
        """Say what would be read, and what would come of it."""
        files = [entry for window in self.windows for entry in window.files if entry.oid == self.facts.oid]
        rows, size = sum(entry.rows for entry in files), sum(entry.bytes for entry in files)
        into = f"as of {self.goal} into {'.'.join(self.place)}" if self.goal else f"in place of {'.'.join(self.place)}"
        return (
            f"{self.facts.qualified}: copy {self.copied.copy_id} at {self.copied.lsn} "
            f"({several(self.copied.rows, 'row')}, {self.copied.bytes} bytes) and {several(len(self.windows), 'window')} since "
            f"({several(rows, 'change')}, {size} bytes), {into}"
        )


def sources(ctx: Context, request: Replay) -> list[Source]:
    """Return what each table would be built from; changes nothing.

    Raises ConfigError("table-unknown" | "range-invalid" | "config-invalid"), LakeError("range-unavailable" |
    "shadow-exists"), LedgerError("table-not-ready" | "rebuild-open" | "pipeline-halted" | "not-bootstrapped").
    """
    position = require_running(ctx)
    known = ctx.ledger.tables.all(ctx.name)
    records = require_named([record for record in known if record.state != "dropped"], request.tables)
    _require_suffix(request)
    for record in records:
        if record.state != "ready":
            why = f" ([{record.paused_slug}] {record.paused_reason})" if record.paused_slug else ""
            raise not_ready(record, "to be ready", f"its landed changes may not fit{why}: resync it instead")
    if request.shadow is None:
        open_rebuilds(ctx, [record.oid for record in records], "replay")
    windows = ctx.ledger.windows.all(ctx.name)
    windows = [window for window in windows if window.state != "planned" and window.upto_lsn <= position]
    since = None if request.from_ is None else resolve_position(ctx, "from", request.from_, windows, position)
    goal = None
    if request.shadow is not None:
        goal = position if request.upto is None else resolve_position(ctx, "upto", request.upto, windows, position)
    if since is not None and since > (goal or position):
        raise ConfigError("range-invalid", f"expected `from` before `upto`, got {since} and {goal or position}")
    found = [_source(ctx, record, windows, since, goal, request.shadow) for record in records]
    if request.shadow is not None:
        _require_free(ctx, found, known)
    return found


def _require_suffix(request: Replay) -> None:
    if request.shadow is None:
        if request.upto is not None:
            raise ConfigError(
                "range-invalid",
                f"expected no `upto` in place, where a table follows its source, got {request.upto}; "
                "name a shadow suffix for the table as of a place",
            )
    elif not _SUFFIX.fullmatch(request.shadow) or request.shadow == _TAKEN_SUFFIX:
        raise ConfigError(
            "config-invalid",
            f"expected a shadow suffix of letters, digits and underscores, other than {_TAKEN_SUFFIX}, "
            f"got {request.shadow!r}",
        )


def _source(
    ctx: Context,
    record: TableRecord,
    windows: Sequence[WindowRecord],
    since: Lsn | None,
    goal: Lsn | None,
    suffix: str | None,
) -> Source:
    """Choose the newest copy that is early enough, and see that all it needs is there."""
    position = ctx.ledger.pipelines.get(ctx.name).position
    oldest = windows[0].from_lsn if windows else position or Lsn(0)  # what came before is in no window any more
    copies = [each for each in ctx.ledger.loads.copies(ctx.name, state="done") if each.oid == record.oid]
    lost = [
        each
        for each in ctx.ledger.windows.skipped(ctx.name)
        if record.oid in each.oids and (goal is None or each.lsn < goal)
    ]
    fetched = max((each.lsn for each in ctx.ledger.loads.fetches(ctx.name) if each.oid == record.oid), default=Lsn(0))
    usable = [
        each
        for each in copies
        if each.lsn > fetched and oldest <= each.needs_after and all(saw(each, skipped) for skipped in lost)
    ]
    limit = min((each for each in (since, goal) if each is not None), default=None)
    early = [each for each in usable if limit is None or each.lsn <= limit]
    if not early:
        least = min((each.lsn for each in usable), default=None)
        there = (
            f"available is {least} to {position}"
            if least is not None
            else "no copy has all of its windows, or columns or partitions were fetched since: resync it"
        )
        raise LakeError(
            "range-unavailable",
            f"expected a copy of {record.schema}.{record.name} at or before {limit or position} with every window since, "
            f"found none; {there}",
        )
    copied = max(early, key=lambda each: each.lsn)
    after = ctx.ledger.loads.copy_due(ctx.name, copied)
    needed = tuple(windows_due(windows, after, goal))
    *parents, name = record.target
    target = record.target if suffix is None else (*parents, f"{name}__{suffix}")
    found = Source(facts_since(ctx, record, copied), copied, needed, target, goal)
    _require_no_lost_rows(record, found)
    _require_files(ctx, found)
    _require_shape(ctx, found)
    return found


def saw(copied: LoadRecord, skipped: SkippedRecord) -> bool:
    """Return whether a copy has the rows of a transaction that no window has."""
    if skipped.xid is None:
        return copied.lsn > skipped.known_lsn
    return Snapshot.parse(copied.snapshot).sees(skipped.xid)


def facts_since(ctx: Context, record: TableRecord, copied: LoadRecord) -> TableFacts:
    """Return what the table looked like from this copy on: as it is now, or as it was when the next copy replaced it."""
    if copied.copy_id == record.copy_id:
        return record
    later = [
        each
        for each in ctx.ledger.loads.builds(ctx.name, states=["done"])
        if (each.oid, each.era) == (record.oid, copied.era)
        and each.cause == "resync"
        and each.lsn > copied.lsn
        and each.former
    ]
    former = min(later, key=lambda each: each.lsn).former if later else None
    if former is None:
        return record
    return replace(record, identity=former.identity, columns=former.columns, renamed_to=None)


def _require_no_lost_rows(record: TableRecord, found: Source) -> None:
    """See that a replay neither brings rows of gone partitions back nor loses kept ones; raises LakeError("range-unavailable").

    Nothing that is landed says what became of them.
    """
    for each in record.accepted.kept:
        if each.lsn is not None and found.copied.lsn >= each.lsn:
            raise LakeError(
                "range-unavailable",
                f"expected a copy of {record.qualified} from before {each.lsn}, since the lake keeps rows of partition {each.name}, "
                f"which the source has not had since then, but the copy is of {found.copied.lsn}; choose an older copy",
            )
    for each in record.accepted.leaving:
        if each.lsn is not None and found.copied.lsn < each.lsn <= (found.goal or each.lsn):
            raise LakeError(
                "range-unavailable",
                f"expected every change of {record.qualified} since its copy in the landing zone, but its partition {each.name} was "
                f"dropped before {each.lsn}, and a replay would bring its rows back; resync it, or build a shadow as of an earlier "
                "position",
            )


def _require_files(ctx: Context, found: Source) -> None:
    landed = [entry for window in found.windows for entry in window.files if entry.oid == found.facts.oid]
    for entry in (*found.copied.files, *landed):
        if not ctx.landing.exists(entry.path):
            raise LakeError(
                "range-unavailable",
                f"expected the landing zone to have {entry.path}, which {found.facts.qualified} is built "
                "from, found none; restore the file, or resync the table",
            )


def _require_shape(ctx: Context, found: Source) -> None:
    """See that the table kept its columns from its copy to the goal; raises LakeError("range-unavailable")."""
    snapshot = Snapshot.parse(found.copied.snapshot)
    try:
        tuple(fitting(ctx, found.facts, snapshot, found.windows, landed_relations(ctx), goal=found.goal))
    except LakeError as error:
        if error.slug != "schema-change":
            raise
        raise LakeError("range-unavailable", error.message) from None


def _require_free(ctx: Context, found: Sequence[Source], known: Sequence[TableRecord]) -> None:
    """See that nothing is where the shadows go; raises LakeError("shadow-exists")."""
    going_on = {each.place for each in ctx.ledger.loads.builds(ctx.name) if each.cause == "shadow"}
    targets = {record.target for record in known}
    with lake_reader(ctx.pipeline.lake.catalog, ctx.catalog) as lake:
        for source in found:
            taken = source.place in targets or lake.table(source.place) is not None
            if taken and source.place not in going_on:
                raise LakeError(
                    "shadow-exists",
                    f"expected no table {'.'.join(source.place)} in the lake, found one; "
                    "drop it, or choose another suffix",
                )

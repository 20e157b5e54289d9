"""What a migration means for each table: the decisions of capture, on the catalog before it and after it. Pure.

Tables are taken for `ready`, so that everything that can be followed is. Where capture would look at rows or at the stream,
which an empty scratch database does not have, the worse outcome is given and said to be that.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from penstock.errors import Trouble
from penstock.flow import archives
from penstock.flow.context import Context, on_change
from penstock.flow.load.waiting import why_no_copy
from penstock.flow.schema.membership import came_back_reason, member_changes
from penstock.flow.schema.names import table_facts, with_name
from penstock.flow.schema.publication import Alteration, changed, publishing_of
from penstock.flow.schema.questions import plan_of
from penstock.flow.schema.run import policy_of
from penstock.flow.trial.snapshots import TriedLog
from penstock.ledger.records import Publishing
from penstock.ledger.table_records import TableRecord
from penstock.shapes.accepted import Accepted
from penstock.shapes.plan import Plan
from penstock.shapes.reads import leaves_to_inspect
from penstock.shapes.rules import effect
from penstock.shapes.source_table import SourceTable
from penstock.shapes.steps import COLUMNS, COPY, LEAVES, UNTIL, EventName, Evidence, Outcome, Policy, worst
from penstock.source.catalog_snapshot import CatalogSnapshot
from penstock.source.preflight.findings import names

PIPELINE = "the whole pipeline"
_NOTHING = "nothing"
_BY_A_PERSON = UNTIL.format("a person runs `penstock resync`")


@dataclass(frozen=True, slots=True)
class Change:
    """Say what one change means: by which rule, in words, how far it concerns anybody, what it costs, and what readers see."""

    rule: str
    text: str
    outcome: Outcome
    cost: str
    readers: str


@dataclass(frozen=True, slots=True)
class TableOutcome:
    """Hold all that a migration means for one table, by its name before; `copied`: whether it gets a copy, by hand or not."""

    table: str
    changes: tuple[Change, ...]
    copied: bool = False

    @property
    def outcome(self) -> Outcome:
        """Return what concerns most."""
        return worst([change.outcome for change in self.changes])


@dataclass(frozen=True, slots=True)
class Migration:
    """Hold what the catalog says before and after, what capture would alter of the publication, and which leaves are `blank`.

    A leaf is blank that the migration made and that had no row when it was attached. `ddl_log` is what the event trigger logged.
    """

    ctx: Context
    before: CatalogSnapshot
    after: CatalogSnapshot
    alteration: Alteration | None
    blank: frozenset[int] = frozenset()
    ddl_log: TriedLog = field(default_factory=TriedLog)

    @property
    def publishing(self) -> tuple[Publishing, Publishing]:
        """Return what the publication publishes before and after."""
        before, now, meant = self.before.publication, self.after.publication, self.ctx.pipeline.source.publish
        if before is None or now is None:
            raise AssertionError("expected a publication in the scratch database before and after")
        known = publishing_of(before, None, meant)
        return known, publishing_of(now, known, meant)

    def publication_altered(self, known: Mapping[int, TableRecord]) -> Iterator[TableOutcome]:
        before, now = self.publishing
        if before.stamp != now.stamp:
            why = f"publication {self.ctx.pipeline.publication} is altered: {changed(before, now)}"
            for record in known.values():
                if record.oid in self.after.by_oid:
                    yield self._copied(record, Trouble.usual("publication-changed", why))

    def back(self, record: TableRecord, table: SourceTable) -> TableOutcome:
        return self._copied(record, Trouble.usual("publication-changed", came_back_reason(self.ctx, record, table)))

    def left(self, record: TableRecord) -> TableOutcome:
        there, name = {relation.oid for relation in self.after.relations}, self.ctx.pipeline.publication
        what = f"the table leaves publication {name}" if record.oid in there else "the table is dropped"
        outcome: Outcome = "free"
        readers = "the table as it was then, without any later change"
        if self.ctx.pipeline.tables.on_removed == "drop":
            outcome, readers = "loses", "no table, once maintenance has dropped it"
        return TableOutcome(record.qualified, (Change("table-removed", what, outcome, _NOTHING, readers),))

    def joined(self, table: SourceTable) -> TableOutcome:
        there = {name for each in self.before.relations for name in (each.oid, each.qualified)}
        new = table.oid not in there and table.qualified not in there  # one in place of another is filled, as a rule
        what = f"the table {'is new and ' if table.oid not in there else ''}joins publication {self.ctx.pipeline.publication}"
        if blocker := why_no_copy(table, self.after.publication, joining=True):
            change = Change(
                "table-added", f"{what}; {blocker.message}", "pauses", COPY.text, "no such table until that is mended"
            )
        elif self._shares_target(table):
            clash = f"{what}, and another table has its name in the lake: see lake.target"
            change = Change(
                "target-clash", clash, "pauses", COPY.text, "no such table until one of them has another name"
            )
        else:
            by_itself = self.ctx.pipeline.tables.on_added == "copy"
            by = "its copy" if by_itself else "a person runs `penstock resync --new --no-dry-run`"
            name = ".".join(self.ctx.pipeline.target(table.schema, table.name))
            cost = "a copy of what it holds by then" if new else COPY.text
            change = Change("table-added", what, "free" if new else "copies", cost, f"a new table {name}, after {by}")
        return TableOutcome(table.qualified, (change,), copied=not new)

    def refused(self) -> Iterator[TableOutcome]:
        """Yield the tables that the patterns choose and the publication does not take, where that is new."""
        before = {table.oid for table in self.before.candidates}
        new = {table.oid: table.qualified for table in self.after.candidates if table.oid not in before}
        for notice in self.alteration.notices if self.alteration else ():
            if notice.oid is not None and notice.oid in new:
                change = Change(notice.slug, notice.message, "pauses", _NOTHING, "no such table")
                yield TableOutcome(new[notice.oid], (change,))

    def compared(self, record: TableRecord) -> TableOutcome | None:
        """Return what follows for a table that is there before and after, or None where nothing of it changed."""
        now = self.after.by_oid.get(record.oid)
        if now is None or Accepted(now.shape) == record.accepted:
            return None
        renamed = list(self._renamed(record, now))
        if renamed:
            record = replace(record, accepted=with_name(record.accepted, now))
        policy = policy_of(self.ctx, record, self.before.sent)
        decided = plan_of(record, now, policy, Evidence(rows_sent=self.blank))
        if decided.reason is not None:
            tables = (self.before.by_oid[record.oid], now)
            decided = self.ddl_log.plan(record, tables, policy, decided)
        if decided.reason is not None:
            worst_case = ""
            possible = leaves_to_inspect(record.columns, record.accepted.shape, now)
            leaves = frozenset(leaf.oid for leaf in (*possible.files, *(each.leaf for each in possible.arrived)))
            if plan_of(record, now, policy, Evidence(rows_sent=leaves)).reason is None:
                worst_case = (
                    ". That is the worst case: capture looks at the rows and at the stream, and copies only if it must"
                )
            trouble = replace(decided.trouble, reason=f"{decided.reason}{worst_case}")
            return self._copied(record, trouble, now, decided)
        changes = (*renamed, *(_followed(policy, event.name, event.text) for event in decided.events))
        if not changes:
            text = "its catalog entries change, and no stored value does"
            changes = (Change("unchanged", text, "free", _NOTHING, "the table as before"),)
        return TableOutcome(record.qualified, changes)

    def _renamed(self, record: TableRecord, now: SourceTable) -> Iterator[Change]:
        """Yield what another name means, where capture follows it."""
        policy = on_change(self.ctx.pipeline, record.schema, record.name)
        if policy != "follow" or record.qualified == now.qualified:
            return
        text = f"the table was renamed from {record.qualified} to {now.qualified}"
        if self.ctx.pipeline.lake.on_renamed_table == "follow" and self._shares_target(now):
            clash = f"{text}, and another table has its name in the lake: see lake.target"
            yield Change(
                "target-clash", clash, "pauses", _NOTHING, "the table under its old name, without later changes"
            )
        else:
            yield _followed(policy_of(self.ctx, record), "rename-table", text)

    def _copied(
        self,
        record: TableRecord,
        trouble: Trouble,
        now: SourceTable | None = None,
        decided: Plan | None = None,
    ) -> TableOutcome:
        """Return what follows where capture pauses a table: a copy, of a part if that is enough, by itself or by a person."""
        blocker = why_no_copy(now, self.after.publication, joining=False) if now else None
        answered = (
            trouble.needs_copy
            and on_change(self.ctx.pipeline, record.schema, record.name) != "pause"
            and not self.publishing[1].withheld
        )
        outcome: Outcome = "copies" if answered and blocker is None else "pauses"
        reason = trouble.reason
        partly = decided is not None and decided.leaves_read is not None
        if not partly and (names_ := archives.only_in_lake(self.ctx, record, now)):
            outcome, reason = "pauses", f"{reason}; a copy would lose the rows of {names(names_)}, which the lake keeps"
        cost, readers = COPY.text, COPY.readers if outcome == "copies" else _BY_A_PERSON
        text = f"{reason}; {blocker.message}" if blocker else reason
        if now is not None and decided is not None and outcome == "copies":
            cost, readers = _part(decided, now) or (cost, readers)
        return TableOutcome(record.qualified, (Change(trouble.slug, text, outcome, cost, readers),), copied=True)

    def _shares_target(self, table: SourceTable) -> bool:
        target = self.ctx.pipeline.target(table.schema, table.name)
        others = (other for other in self.after.tables if other.oid != table.oid)
        return any(self.ctx.pipeline.target(other.schema, other.name) == target for other in others)


def outcomes(case: Migration) -> list[TableOutcome]:
    """Return what follows for each table that a migration changes, by name."""
    if broken := _without_publication(case):
        return [broken]
    known = {table.oid: _record(case.ctx, table) for table in case.before.tables}
    members = member_changes(known.values(), case.after, split=False)
    found = [*case.publication_altered(known)]
    found += [case.back(record, table) for record, table in members.back]
    found += [case.left(record) for record in members.left]
    found += [case.joined(table) for table in members.joined]
    found += case.refused()
    others = {record.oid for record, _ in members.back} | {record.oid for record in members.left}
    for record in (record for record in known.values() if record.oid not in others):
        if changes := case.compared(record):
            found.append(changes)
    return _by_table(found)


def _followed(policy: Policy, name: EventName, text: str) -> Change:
    means = effect(name, policy)
    return Change(name, text, means.outcome, means.cost.text, means.readers or means.cost.readers)


def _part(decided: Plan, now: SourceTable) -> tuple[str, str] | None:
    """Return what is copied where that is less than the table, and what the table has then."""
    if decided.columns_read is not None:
        fetched = [column.name for column in now.columns if column.attnum in decided.columns_read.attnums]
        return f"a copy of the key and {names(fetched)}", COLUMNS.readers
    if decided.leaves_read is not None:
        read = [leaf.name for leaf in now.leaves if leaf.oid in decided.leaves_read.leaves]
        return f"a copy of {names(read) if read else 'no row'}", LEAVES.readers
    return None


def _without_publication(case: Migration) -> TableOutcome | None:
    before, now = case.before.publication, case.after.publication
    if before is None or (now is not None and now.oid == before.oid):
        return None
    what = "is gone or has another name" if now is None else "is another one of the same name"
    text = f"publication {case.ctx.pipeline.publication} {what}, so that no change can be read: capture halts"
    copy = f"a copy of all tables: {names(table.qualified for table in case.before.tables)}"
    readers = UNTIL.format("a person has run `penstock recover`")
    return TableOutcome(PIPELINE, (Change("publication-missing", text, "pauses", copy, readers),))


def _record(ctx: Context, table: SourceTable) -> TableRecord:
    """Return a table as the ledger would know it once readers see it."""
    return TableRecord(**vars(table_facts(ctx, table)), pipeline=ctx.name, state="ready")


def _by_table(found: Sequence[TableOutcome]) -> list[TableOutcome]:
    """Put what concerns one name together: a table may leave and another of its name join."""
    by_name = {one.table: [each for each in found if each.table == one.table] for one in found}
    return [
        TableOutcome(
            table,
            tuple(dict.fromkeys(change for one in each for change in one.changes)),
            any(one.copied for one in each),
        )
        for table, each in sorted(by_name.items())
    ]

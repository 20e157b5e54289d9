"""A table with new files of which only the stream can say whether they hide a change."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from penstock.flow.schema.apply_plan import Known
from penstock.ledger.table_records import TableRecord
from penstock.lsn import Lsn
from penstock.shapes.accepted import Accepted
from penstock.shapes.diff import added_columns, altered_columns
from penstock.shapes.plan import Plan, plan
from penstock.shapes.source_table import SourceTable
from penstock.shapes.steps import Evidence, Policy

_NEW = ""
"""The version of a column that came while a file was not explained: no other is like it, so each look holds both together."""


@dataclass(frozen=True, slots=True)
class Undecided:
    """Hold a table with new files that the stream may explain up to `through`: by a TRUNCATE of it, or by its silence.

    `leaves` names those leaves with the transaction that gave each its file; `empty` the partitions that are new and hold
    nothing, with the place up to which the stream must bring nothing of them either.
    """

    known: Known
    now: SourceTable
    policy: Policy
    rows_sent: frozenset[int]
    leaves: Mapping[int, int]
    empty: Mapping[int, Lsn]
    through: Lsn

    def plan(self, explained: Collection[int], unused: Iterable[int], emptied: Mapping[int, str] | None = None) -> Plan:
        """Return the plan if the stream has explained these leaves, and brings nothing of those that are `unused`."""
        evidence = Evidence(frozenset(explained), self.rows_sent, frozenset(unused), emptied or {})
        return plan_of(self.known, self.now, self.policy, evidence)

    def best(self) -> Plan:
        """Return the plan if the stream explains everything, but for partitions that are gone: these wait for the others."""
        found = self.plan(self.leaves.keys() | self.empty.keys(), self.empty)
        events = tuple(event for event in found.events if event.name != "drop-partition")
        return replace(found, events=events, gone=())

    @property
    def is_refused(self) -> bool:
        """Return whether the table waits for a fetch whatever the stream explains, which may spare it a copy."""
        return self.best().reason is not None

    def with_explained(self, explained: Collection[int]) -> Accepted:
        """Return what was known with the files of now where they are explained: what is read later need not doubt these."""
        known, now = self.known.accepted, self.now.shape.leaves
        leaves = {**known.shape.leaves, **{oid: now[oid] for oid in explained}}
        return replace(known, shape=replace(known.shape, leaves=leaves))

    def accepted(self, seen: Iterable[int] = (), explained: Collection[int] = ()) -> Accepted:
        """Return the shape of now, but of the undecided and missing leaves and of altered columns that of before, and until when they wait.

        A file that is explained by nothing is held against the columns as they were before it, at each look until then.

        `seen` are those of which the stream has brought something meanwhile, `explained` those whose files are no question any more.
        """
        now, before = self.now.shape, self.known.accepted.shape
        open_ = {**dict.fromkeys(self.leaves, self.through), **self.empty}
        open_ = {oid: through for oid, through in open_.items() if oid not in explained}
        leaves = {}
        for oid, leaf in now.leaves.items():
            if oid not in open_:
                leaves[oid] = leaf
            elif oid in before.leaves:  # a leaf that is new stays new
                leaves[oid] = replace(leaf, file=before.leaves[oid].file)
        if now.kind == "p":
            leaves |= {oid: leaf for oid, leaf in before.leaves.items() if oid not in now.leaves}
        columns = dict(now.columns)
        for column in altered_columns(self.known.columns, before, self.now):
            columns[column.attnum] = replace(columns[column.attnum], version=before.columns[column.attnum].version)
        for column in added_columns(self.known.columns, self.now):
            columns[column.attnum] = replace(columns[column.attnum], version=_NEW)
        return Accepted(
            replace(now, leaves=leaves, columns=columns),
            undecided=open_,
            seen_in_stream=tuple(sorted({*self.known.accepted.seen_in_stream, *seen})),
        )


def plan_of(known: Known, now: SourceTable | None, policy: Policy, evidence: Evidence) -> Plan:
    """Return the plan for a table as it is now, from where the lake has it."""
    through = known.complete_through if isinstance(known, TableRecord) else None
    return plan(known, now, evidence, policy, through or Lsn(0))

"""The plan for one table: what the lake follows, the least that is to be read again, or why the table waits. Pure.

Any step that waits pauses the table; any copy reads all of it; where values of columns, or rows of partitions, are all that is in
doubt, these alone are read.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from penstock.conditions import Remedy
from penstock.errors import Trouble
from penstock.lsn import Lsn
from penstock.shapes.accepted import GonePartition, TableFacts
from penstock.shapes.changes import LeafGone
from penstock.shapes.diff import diff, with_shown_defaults
from penstock.shapes.mirror_column import MirrorColumn, followed
from penstock.shapes.reads import ColumnRead, LeafRead, column_read, leaf_read
from penstock.shapes.rules import RULES
from penstock.shapes.source_table import SourceTable
from penstock.shapes.steps import ADDED_ONLY, Copy, Event, Evidence, Follow, Policy, Read, Wait

_START = Lsn(0)
_NONE = Evidence()


@dataclass(frozen=True, slots=True)
class Plan:
    """Say what follows for one table: its columns and replica identity from now on and the events of that; or the reason to pause it.

    With `columns_read` it needs no more than the values of some columns to become that, with `leaves_read` no more than the rows of
    some partitions. `gone` are the partitions whose rows go, or are kept. `asks`: rows or stream may show that there is less reason.
    """

    columns: tuple[MirrorColumn, ...] = ()
    identity: str | None = None
    events: tuple[Event, ...] = ()
    reason: str | None = None
    slug: str = "schema-change"
    columns_read: ColumnRead | None = None
    leaves_read: LeafRead | None = None
    gone: tuple[GonePartition, ...] = ()
    asks: bool = False

    @property
    def trouble(self) -> Trouble:
        """Return why the table stops, where there is a reason."""
        remedy: Remedy = "read" if self.reads_part else "copy" if self.slug == "schema-change" else "person"
        return Trouble(self.slug, self.reason or "", remedy)

    @property
    def reads_part(self) -> bool:
        """Return whether less than a copy of the table is enough."""
        return self.columns_read is not None or self.leaves_read is not None


def plan(
    known: TableFacts,
    now: SourceTable | None,
    evidence: Evidence = _NONE,
    policy: Policy = ADDED_ONLY,
    through: Lsn = _START,
) -> Plan:
    """Return what follows for a table, given what the ledger knows of it and what a look has found.

    `through` is how far the lake has the table.
    """
    if now is None:
        return Plan(reason="the table was dropped, or left the publication")
    now = with_shown_defaults(known.accepted.shape, now)
    changes = diff(known, now, evidence.empty_in)
    steps = [RULES[type(change)].decide(change, evidence, policy) for change in changes]
    if waits := [step for step in steps if isinstance(step, Wait)]:
        return Plan(reason=waits[0].reason, slug=waits[0].slug)
    followed_by = [step for step in steps if isinstance(step, Follow)]
    rest = [step for step in steps if isinstance(step, Read | Copy)]
    asks = any(isinstance(step, Read) and step.asks for step in rest)
    keep = policy.on_dropped_partition == "keep"
    gone = tuple(replace(each.partition, kept=keep) for each in changes if isinstance(each, LeafGone))
    columns_read = leaves_read = None
    reads = [step for step in rest if isinstance(step, Read)]
    if policy.follows and reads and len(reads) == len(rest):
        leaves = [step.leaf for step in reads if step.leaf is not None]
        if not leaves:
            columns_read = _columns_read(known, now, reads, followed_by)
        elif len(leaves) == len(reads):
            leaves_read = leaf_read(known.accepted, now, leaves, gone, keep=keep, through=through)
    reasons = [step.reason for step in rest]
    if rest and columns_read is None:
        reasons += [step.reason for step in followed_by if step.reason]
    reason = "; ".join(dict.fromkeys(reasons)) or None
    if reason is not None and columns_read is None and leaves_read is None:
        return Plan(reason=reason, asks=asks)
    return Plan(
        followed(known.columns, now, keep_dropped=policy.on_dropped_column == "keep"),
        now.identity,
        tuple(step.event for step in steps if isinstance(step, Follow | Read) and step.event is not None),
        reason,
        columns_read=columns_read,
        leaves_read=leaves_read,
        gone=gone,
        asks=asks,
    )


def _columns_read(
    known: TableFacts, now: SourceTable, reads: Sequence[Read], followed_by: Sequence[Follow]
) -> ColumnRead | None:
    """Return the columns to read, None where changes of before would not find their rows beside them."""
    whole = {step.column for step in reads if step.column is not None}
    found = column_read(known.accepted, now, whole, {step.enum for step in reads if step.enum is not None})
    # changes before the read find their rows by a key that it does not read, as it finds them by the present one
    keys = [step.finds_by for step in followed_by if step.finds_by is not None]
    return found if found and all(key and not key & found.attnums for key in keys) else None

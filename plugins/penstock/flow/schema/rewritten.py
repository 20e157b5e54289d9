"""A table whose file was rewritten with altered columns, of which the source's event trigger may tell that no value has changed."""

from __future__ import annotations

from dataclasses import dataclass, replace

from penstock.flow.schema.undecided import plan_of
from penstock.ledger.table_records import TableRecord
from penstock.lsn import Lsn
from penstock.shapes.accepted import Accepted, Rewriting
from penstock.shapes.ddl_log import Before
from penstock.shapes.diff import altered_columns, file_before
from penstock.shapes.plan import Plan
from penstock.shapes.source_table import Leaf, SourceTable
from penstock.shapes.steps import Event, Evidence, Policy
from penstock.values.lake_types import innermost

_REWRITTEN = -1
"""The number of no file: each command that altered a column of a partitioned table is taken for one that rewrote partitions."""


@dataclass(frozen=True, slots=True)
class Rewritten:
    """Hold a table of which it is to be told up to `through` that the values of altered columns were kept; else `refusal` holds.

    `through` is a place in the WAL behind all that the look has seen.
    """

    known: TableRecord
    now: SourceTable
    policy: Policy
    rows_sent: frozenset[int]
    refusal: Plan
    through: Lsn

    @property
    def versions(self) -> dict[int, str]:
        """Return the versions of the altered columns' catalog rows now, by attnum."""
        found = altered_columns(self.known.columns, self.known.accepted.shape, self.now)
        return {column.attnum: column.version for column in found if not column.generated}

    def before(self) -> Before:
        """Return what was right of the table when its columns had not been altered."""
        shape, open_ = self.known.accepted.shape, self.known.accepted.rewritten
        known = {column.attnum: column.type for column in self.known.columns}
        types = {attnum: (type_.oid, type_.typmod) for attnum, type_ in known.items()}
        types |= open_.types if open_ else {}
        made = [*known.values(), *(column.type for column in self.now.columns)]
        domains = (type_ for type_ in made if type_.base is not None and innermost(type_).typmod == -1)
        return Before(
            file=_REWRITTEN if self.now.kind == "p" else file_before(shape, *self.now.leaves),
            types=types,
            versions={attnum: column.version for attnum, column in shape.columns.items()},
            bases={type_.oid: innermost(type_).oid for type_ in domains},
            checked=open_ is not None and open_.checked,
        )

    def files(self) -> tuple[dict[int, int], dict[int, int]]:
        """Return the files of before and of now of the partitions that were there before."""
        before = {leaf.oid: file_before(self.known.accepted.shape, leaf) for leaf in self._known_leaves()}
        return before, {leaf.oid: leaf.relfilenode for leaf in self._known_leaves()}

    def _known_leaves(self) -> list[Leaf]:
        return [leaf for leaf in self.now.leaves if leaf.oid in self.known.accepted.shape.leaves]

    def best(self) -> Plan:
        """Return the plan if all values were kept."""
        evidence = Evidence(rows_sent=self.rows_sent, values_kept=self.versions)
        return plan_of(self.known, self.now, self.policy, evidence)

    def meanwhile(self) -> Plan:
        """Return what is followed at once: all but the changes of types, which are events only when it is sure."""
        best = self.best()
        return replace(best, events=tuple(event for event in best.events if event.name != "retype-column"))

    def proven(self) -> Plan:
        """Return what is followed when all values were kept, besides what was followed at once."""
        return replace(self.best(), events=self._retyped())

    def _retyped(self) -> tuple[Event, ...]:
        """Return the changes of types since the columns were right, of earlier looks too."""
        open_ = self.known.accepted.rewritten
        waiting = open_.retyped if open_ else ()
        new = (event for event in self.best().events if event.name == "retype-column")
        return (*(Event("retype-column", text, xid) for text, xid in waiting), *new)

    def accepted(self, *, checked: bool = False) -> Accepted:
        """Return the shape of now, but of the table's file and the altered columns that of before, and until when they wait.

        `checked`: a window has been held against it.
        """
        now, before = self.now.shape, self.known.accepted.shape
        versions, right = self.versions, self.before()
        leaves = {
            oid: replace(leaf, file=before.leaves[oid].file) if oid in before.leaves else leaf
            for oid, leaf in now.leaves.items()
        }
        columns = {
            attnum: replace(column, version=before.columns[attnum].version) if attnum in versions else column
            for attnum, column in now.columns.items()
        }
        return Accepted(
            replace(now, leaves=leaves, columns=columns),
            rewritten=Rewriting(
                through=self.through,
                versions=versions,
                types={attnum: right.types[attnum] for attnum in versions},
                retyped=tuple((event.text, event.xid) for event in self._retyped()),
                checked=checked or right.checked,
            ),
        )


def open_case(case: Rewritten) -> Rewritten | None:
    """Return the case of a table that is followed if values were kept, with its place of before; None where there is more against it.

    A table that is not published by its name may be unlogged. Partitions are rewritten one by one: none may have gone, and all
    are ordinary tables, as they were at the last look.
    """
    now, known = case.now, case.known.accepted
    if now.persistence != "p" or not case.policy.follows:
        return None
    if now.kind == "r" and now.oid not in known.shape.leaves:
        return None
    if now.kind == "p" and (any(column.generated for column in now.columns) or not _only_logged(case)):
        return None  # each partition may compute a generated column by an expression of its own
    if known.rewritten is not None and known.rewritten.versions == case.versions:
        case = replace(case, through=known.rewritten.through)
    return case if case.versions and case.best().reason is None else None


def _only_logged(case: Rewritten) -> bool:
    """Return whether no partition has gone, and all log their changes and did so at the last look."""
    known = (case.known.accepted.shape.leaves.get(leaf.oid) for leaf in case.now.leaves)
    logged = all((leaf.kind, leaf.persistence) == ("r", "p") for leaf in case.now.leaves)
    return logged and all(each is None or each.persistence == "p" for each in known) and not case.best().gone


def waiting_files(accepted: Accepted) -> frozenset[int]:
    """Return the leaves of which the file of an earlier look than the last one is known."""
    return frozenset(accepted.shape.leaves if accepted.rewritten else accepted.undecided)

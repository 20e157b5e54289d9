"""A table with new files of which only the stream can say whether they hide a change."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from penstock.flow.capture.column_changes import Following
from penstock.flow.capture.last_look import catalog_versions
from penstock.flow.capture.new_files import altered
from penstock.flow.capture.table_verdict import Verdict, verdict
from penstock.flow.capture.verdict_effects import Known
from penstock.ledger.table_records import TableRecord
from penstock.lsn import Lsn
from penstock.source.tables import SourceTable


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
        return verdict_of(
            self.known, self.now, self.following, self.cleared | set(explained), unused=unused, emptied=emptied
        )

    def best(self) -> Verdict:
        """Return the verdict if the stream explains everything, but for partitions that are gone: these wait for the others."""
        found = self.verdict(self.leaves, self.empty)
        changes = tuple(change for change in found.changes if change.rule != "drop-partition")
        return replace(found, changes=changes, gone=())

    def digest(self, heard: Iterable[int] = ()) -> dict[str, Any]:
        """Return the digest of now, but of the undecided and missing leaves and of altered columns that of before, and until when they wait.

        A file that is explained by nothing is held against the columns as they were before it, at each look until then.

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
        changed = altered(self.known.columns, self.known.catalog_digest, self.now)
        columns = {
            **digest["versions"]["columns"],
            **{
                str(each.attnum): catalog_versions(self.known.catalog_digest, "columns")[str(each.attnum)]
                for each in changed
            },
        }
        versions = {**digest["versions"], "leaves": {oid: seen[oid] for oid in leaves}, "columns": columns}
        waiting = {str(oid): str(through) for oid, through in open_.items()}
        all_heard = {*self.known.catalog_digest.get("heard", ()), *heard}
        return {
            **digest,
            "leaves": leaves,
            "versions": versions,
            "undecided": waiting,
            **({"heard": sorted(all_heard)} if all_heard else {}),
        }


def verdict_of(
    known: Known,
    now: SourceTable | None,
    following: Following,
    cleared: Iterable[int],
    *,
    unused: Iterable[int] = (),
    emptied: Mapping[int, str] | None = None,
    kept: Collection[int] = (),
) -> Verdict:
    """Return the verdict on a table as it is now; the arguments are those of `verdict`."""
    facts = (known.columns, known.identity, known.catalog_digest)
    through = known.complete_through if isinstance(known, TableRecord) else None
    emptied = emptied or {}
    return verdict(
        *facts, now, cleared, unused=unused, emptied=emptied, kept=kept, following=following, through=through
    )

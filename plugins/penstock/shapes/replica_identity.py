"""Whether we understand a published table's old rows; what the server refuses is `penstock.source.refusals`. Pure.

A key with a column that is not sent is none for us, nor is one that is deferrable: two rows may have it until a transaction ends. Under
publish_via_partition_root the stream names the root's identity, while each partition logs old rows by its own: where the two differ,
old rows would be misread.
"""

from collections.abc import Iterable

from penstock.errors import SourceError
from penstock.shapes.source_table import Leaf, SourceTable


def problem(table: SourceTable) -> str | None:
    """Say what is wrong with a table's replica identity if updates and deletes are published, or return None."""
    if table.identity == "n" and table.late_key:
        where = ", in a partition at least" if table.kind == "p" else ""
        return f"its key is deferrable{where}: two rows may have it until a transaction ends, and it has no REPLICA IDENTITY FULL"
    if table.identity == "n":
        return "it has no primary key or identity index of columns that are sent (a generated one is not), and no REPLICA IDENTITY FULL"
    wrong = [leaf.qualified for leaf in strange_partitions(table)]
    if wrong:
        return f"these partitions have another replica identity than the partitioned table: {', '.join(wrong)}"
    return None


def remedy(table: SourceTable) -> str:
    """Say what ends that problem."""
    if table.late_key:
        each = " and each partition" if table.kind == "p" else ""
        return f"set replica identity full for it{each}, or make the key not deferrable"
    return "give it, and each partition, one replica identity of columns that are sent"


def strange_partitions(table: SourceTable) -> list[Leaf]:
    """Return the partitions that log other old rows than the partitioned table's identity says."""
    return [leaf for leaf in table.leaves if not _fits(leaf, table)] if table.kind == "p" else []


def unlogged_partitions(table: SourceTable) -> list[Leaf]:
    """Return the partitions with rows that are in no WAL."""
    return [leaf for leaf in table.leaves if leaf.kind == "r" and leaf.persistence != "p"] if table.kind == "p" else []


def require_usable(tables: Iterable[SourceTable]) -> None:
    """Raise SourceError("no-usable-identity") naming the tables whose old rows would be misread."""
    found = [f"{table.qualified}: {reason}" for table in tables if (reason := problem(table))]
    if found:
        raise SourceError(
            "no-usable-identity",
            "expected every table, with its partitions, to have one replica identity of columns that are sent before it is "
            f"published, else its old rows are misread; {'; '.join(found)}; or exclude the table",
        )


def _fits(leaf: Leaf, table: SourceTable) -> bool:
    if leaf.kind != "r":
        return True  # foreign: its rows never come
    if table.identity == "n":
        return True  # for inserts only
    if table.identity == "f":
        return leaf.identity == "f"
    return leaf.identity == "f" or (leaf.identity != "n" and set(leaf.key) == set(table.key))

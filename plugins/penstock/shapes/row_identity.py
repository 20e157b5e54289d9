"""Whether changes find their rows in the lake: by the old rows that a table logs, and by the columns that tell its rows apart. Pure.

What the server refuses is `penstock.source.refusals`. A key with a column that is not sent is none for us, nor is one that is deferrable:
two rows may have it until a transaction ends. Under publish_via_partition_root the stream names the root's identity, while each partition
logs old rows by its own: where the two differ, old rows would be misread.

The text of `regclass` and its kin, of `aclitem`, and of whatever is made of these is the name of another object. The server stores a
number, and writes the name that the object has at that moment. When it is renamed or dropped, rows of before show another text at the
source, and nothing of that is in the stream. So rows must not be told apart by such a text.
"""

from collections.abc import Iterable, Sequence

from penstock.errors import SourceError
from penstock.shapes.source_table import Leaf, SourceColumn, SourceTable
from penstock.values.lake_types import innermost

LOST = "the lake keeps the name of when a row was written, and shows nothing of a rename or a drop since"
Problem = tuple[str, str]
"""Why updates and deletes would not find their rows, and what ends that."""


def problem(table: SourceTable) -> Problem | None:
    """Say why a table's updates and deletes would not find their rows in the lake, or return None."""
    return misread(table) or unfound(table)


def misread(table: SourceTable) -> Problem | None:
    """Say what is wrong with a table's replica identity, or return None."""
    step = "give it, and each partition, one replica identity of columns that are sent"
    if table.identity == "n" and table.late_key:
        where, each = (", in a partition at least", " and each partition") if table.kind == "p" else ("", "")
        why = f"its key is deferrable{where}: two rows may have it until a transaction ends, and it has no REPLICA IDENTITY FULL"
        return why, f"set replica identity full for it{each}, or make the key not deferrable"
    if table.identity == "n":
        why = "it has no primary key or identity index of columns that are sent (a generated one is not), and no REPLICA IDENTITY FULL"
        return why, step
    if wrong := [leaf.qualified for leaf in strange_partitions(table)]:
        return f"these partitions have another replica identity than the partitioned table: {', '.join(wrong)}", step
    return None


def strange_partitions(table: SourceTable) -> list[Leaf]:
    """Return the partitions that log other old rows than the partitioned table's identity says."""
    return [leaf for leaf in table.leaves if not _fits(leaf, table)] if table.kind == "p" else []


def unlogged_partitions(table: SourceTable) -> list[Leaf]:
    """Return the partitions with rows that are in no WAL."""
    return [leaf for leaf in table.leaves if leaf.kind == "r" and leaf.persistence != "p"] if table.kind == "p" else []


def unfound(table: SourceTable) -> Problem | None:
    """Say which names of other objects tell a table's rows apart, or return None."""
    if not (found := _identifying_names(table)):
        return None
    by = "its key has" if table.key else "without a key only whole rows tell its rows apart, and it has"
    why = f"{by} {named(found)}: when that is renamed or dropped, old rows are not found any more"
    return why, f"give it a key of other columns, or run: {stored(table, found)}"


def names_beside_key(table: SourceTable) -> list[SourceColumn]:
    """Return the columns of names that only show what they show."""
    found = _identifying_names(table)
    return [column for column in table.columns if column.names_objects and column not in found]


def named(columns: Sequence[SourceColumn]) -> str:
    """Name such columns for a message."""
    names = ", ".join(f"{column.name} ({column.names_objects})" for column in columns)
    which = f"columns {names}, whose texts are names" if len(columns) > 1 else f"column {names}, whose text is the name"
    return f"{which} of another object"


def stored(table: SourceTable, columns: Sequence[SourceColumn]) -> str:
    """Return the statement after which columns show what they store, where that is a number, else the text of today."""
    steps = ", ".join(f"alter {_quoted(column.name)} type {_stored_as(column)}" for column in columns)
    return f"alter table {_quoted(table.schema)}.{_quoted(table.name)} {steps}"


def require_found(tables: Iterable[SourceTable]) -> None:
    """Raise SourceError("no-usable-identity") naming the tables whose changes would not find their rows."""
    found = [f"{table.qualified}: {'; '.join(why)}" for table in tables if (why := problem(table))]
    if found:
        raise SourceError(
            "no-usable-identity",
            "expected every table, with its partitions, to have one replica identity of columns that are sent, and that say the same "
            f"of a row at any time, before it is published, got {'; '.join(found)}; or exclude it",
        )


def _fits(leaf: Leaf, table: SourceTable) -> bool:
    if leaf.kind != "r":
        return True  # foreign: its rows never come
    if table.identity == "n":
        return True  # for inserts only
    if table.identity == "f":
        return leaf.identity == "f"
    return leaf.identity == "f" or (leaf.identity != "n" and set(leaf.key) == set(table.key))


def _identifying_names(table: SourceTable) -> list[SourceColumn]:
    """Return the columns of names among those by which rows are told apart: of the key, or of whole rows where there is none."""
    whole_rows = table.identity == "f" and not table.key
    return [column for column in table.columns if column.names_objects and (column.key or whole_rows)]


def _stored_as(column: SourceColumn) -> str:
    type_ = innermost(column.type)
    element = innermost(type_.element) if type_.element is not None else type_
    if element.schema == "pg_catalog" and element.name.startswith("reg"):
        return "oid" if element is type_ else "oid[]"
    return f"text using {_quoted(column.name)}::text"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'

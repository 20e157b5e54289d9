"""What landed rows of a relation, whose columns are known by number, are to the columns of the lake's table. Pure."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from penstock.contract.manifest import FileEntry
from penstock.ledger.table_records import LoadRecord
from penstock.shapes.accepted import TableFacts
from penstock.shapes.mirror_column import present
from penstock.shapes.timeline import RelationMapping, marked
from penstock.values.pgtype import PgType
from penstock.values.type_change import followed, sent_as_real, sent_keeps
from penstock.wire.messages import Relation, RelationColumn

_UNKNOWN = PgType(0, -1, "", "", "")
_TEXT = PgType(25, -1, "pg_catalog", "text", "b")
_TEXT_ARRAY = PgType(1009, -1, "pg_catalog", "_text", "b", element=_TEXT)
_TEXTS = {25: _TEXT, 1043: _TEXT, 1009: _TEXT_ARRAY, 1015: _TEXT_ARRAY}
"""text, varchar and their arrays. Source: PostgreSQL's pg_type.dat."""
_NAMED_TEXTS = dict.fromkeys(("text", "varchar", "citext"), _TEXT)
"""Those that the stream names: types of extensions, and domains by what they are made of."""


@dataclass(frozen=True, slots=True)
class Fit:
    """Say what landed rows are to the lake's table: per field its column, None for one that the lake does not have; or why not.

    `key` are the columns by which they find their rows, where these are others than the table's key: none for whole rows.
    `reals` are the lake's columns of double precision that came as texts of `real`.
    """

    fields: tuple[str | None, ...] = ()
    reason: str | None = None
    key: tuple[str, ...] | None = None
    reals: tuple[str, ...] = ()


def fit(
    table: TableFacts,
    relation: Relation,
    known: RelationMapping,
    overwritten: Collection[int] = (),
) -> Fit:
    """Hold landed rows of a relation, whose columns are known by number, against a table's columns.

    The values of `overwritten` columns count for nothing, so they may be of another type.
    """
    if known.attnums is None:
        return Fit(reason=_unreadable(table, relation))
    columns = {column.attnum: column for column in table.columns}
    fields: dict[int, str] = {}
    reals = list[str]()
    for sent, attnum in zip(relation.columns, known.attnums, strict=True):
        column = None if attnum in overwritten else columns.get(attnum)
        if column is not None and not column.dropped and not _followed(sent, column.type):
            return Fit(reason=f"column {sent.name} changed its type from {column.type.name} under a window")
        if column is not None:
            fields[attnum] = column.name
            reals += [column.name] if sent_as_real(sent.type_oid, column.type) else []
    key = known.key
    if key is None:
        key = _own_key(table) if relation.replica_identity == "f" else marked(relation, known.attnums)
    named = tuple(map(fields.get, known.attnums))
    if relation.replica_identity == "f" and not key and overwritten:
        return Fit(
            reason="old rows came whole and without a key under a window, and some of their columns were fetched since"
        )
    found = _fit(table, named, fields, key, whole_rows=relation.replica_identity == "f")
    return replace(found, reals=tuple(reals))


def _fit(
    table: TableFacts,
    named: tuple[str | None, ...],
    fields: Mapping[int, str],
    key: Collection[int],
    *,
    whole_rows: bool,
) -> Fit:
    """Say by which of the lake's columns rows that have these `fields` are found; `whole_rows` says that they bring those."""
    differs = set(key) != set(_own_key(table))
    if differs and table.accepted.shape.kind == "p":
        return Fit(
            reason="the replica identity was another one under a window, and partitions change theirs one by one"
        )
    if not fields.keys() >= set(key):
        return Fit(
            reason="old rows came under a window with a key that is not known, or that the lake does not have any more"
        )
    strange = [column.name for column in table.columns if column.dropped and column.attnum not in fields]
    if whole_rows and not key and strange:
        return Fit(reason=f"old rows came whole and without a key under a window, but without column {strange[0]}")
    return Fit(named, key=tuple(fields[attnum] for attnum in key) if differs else None)


def _own_key(table: TableFacts) -> tuple[int, ...]:
    return tuple(column.attnum for column in table.columns if column.key)


def fetched_fit(
    table: TableFacts, entry: FileEntry, fetches: Iterable[LoadRecord], overwritten: Collection[int]
) -> Fit:
    """Say what fetched values are to a table: they come with the key of that time."""
    attnums = entry.attnums or ()
    names = {column.attnum: column.name for column in table.columns if column.attnum not in overwritten}
    fields = {attnum: names[attnum] for attnum in attnums if attnum in names}
    asked = {attnum for each in fetches if entry in each.files for attnum in each.attnums}
    key = [attnum for attnum in attnums if attnum not in asked]
    return _fit(table, tuple(map(fields.get, attnums)), fields, key, whole_rows=False)


def overwritten(fetches: Iterable[LoadRecord], oid: int, last: int | None) -> frozenset[int]:
    """Return the columns of a table of which every row's value was fetched after a commit."""
    if last is None:
        return frozenset()
    later = (each for each in fetches if each.oid == oid and each.whole and each.state == "landed")
    return frozenset(attnum for each in later if last < each.lsn - 1 for attnum in each.attnums)


def _followed(sent: RelationColumn, now: PgType) -> bool:
    """Return whether texts of the type that a message names stand in a column of the present type as they are."""
    if (sent.type_oid, sent.typmod) == (now.oid, now.typmod) or sent_keeps(sent.type_oid, now):
        return True
    bases = [now]
    while (base := bases[-1].base) is not None:
        bases.append(base)
    before = next((replace(each, typmod=sent.typmod) for each in bases if each.oid == sent.type_oid), None)
    if bases[-1].schema == "pg_catalog" and bases[-1].name == sent.base:  # sent as a domain over what it is now
        before = replace(bases[-1], typmod=sent.typmod)
    return followed(before or _TEXTS.get(sent.type_oid) or _NAMED_TEXTS.get(sent.base, _UNKNOWN), now)


def _unreadable(table: TableFacts, relation: Relation) -> str:
    known = {column.name for column in present(table.columns)}
    strange = [column.name for column in relation.columns if column.name not in known]
    if strange:
        return f"the stream has a column {strange[0]} that cannot be told to be one of the catalog's"
    return "the stream's columns can be read as the catalog's in more than one way: one was dropped and another added"

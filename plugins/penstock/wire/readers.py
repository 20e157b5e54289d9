"""One message of pgoutput, protocol 1 to 4, from its bytes: a reader for each, which takes the fields in wire order.

Source: PostgreSQL documentation, "Logical Replication Message Formats", quoted in each reader; a message that is nothing but fields
has a reader that names them (`fields`). What may follow what is the grammar's business (`penstock.wire.pgoutput`).
"""

from collections.abc import Callable, Mapping
from typing import cast

from penstock.errors import ProtocolError
from penstock.wire import messages as m
from penstock.wire.cursor import NEXT_STEP, Cursor

Relations = Mapping[int, m.Relation]
Reader = Callable[[Cursor, Relations], m.PlainMessage]

UNUSED = "unused flags"
PREPARED = ("lsn prepare LSN", "lsn end LSN", "timestamp prepare time", "int32 xid", "string gid")


def fields(message: type[m.PlainMessage], *formats: str) -> Reader:
    """Return the reader of a message that is nothing but fields, each as the cursor's method and the field's name.

    `UNUSED` stands for flags that must be 0 and are no field of ours.
    """
    taken = [(getattr(Cursor, method), name) for method, _, name in (each.partition(" ") for each in formats)]

    def read(cursor: Cursor, _: Relations) -> m.PlainMessage:
        values = [take(cursor, name) for take, name in taken]
        return message(*(value for value in values if value is not None))

    return read


# --- relations and types --------------------------------------------------------------------------------------


def read_relation(cursor: Cursor, _: Relations) -> m.Relation:
    """Read R: Int32 oid, String namespace, String name, Int8 replica identity, Int16 count, columns.

    The namespace `pg_catalog` comes as an empty string.
    """
    oid = cursor.int32("relation oid")
    namespace = cursor.string("namespace") or "pg_catalog"
    name = cursor.string("relation name")
    identity = cursor.letter("replica identity", "dnfi")
    columns = tuple(_column(cursor) for _ in range(cursor.int16("number of columns")))
    return m.Relation(oid, namespace, name, identity, columns)


def _column(cursor: Cursor) -> m.RelationColumn:
    """Read a column of R: Int8 flags (1: part of the key), String name, Int32 type oid, Int32 type modifier."""
    key = cursor.flag("column flags")
    name = cursor.string("column name")
    return m.RelationColumn(name, cursor.int32("type oid"), cursor.signed32("type modifier"), key)


def read_type(cursor: Cursor, _: Relations) -> m.Type:
    """Read Y: Int32 oid, String namespace, String name."""
    oid = cursor.int32("type oid")
    return m.Type(oid, cursor.string("namespace") or "pg_catalog", cursor.string("type name"))


# --- changes --------------------------------------------------------------------------------------------------


def read_insert(cursor: Cursor, relations: Relations) -> m.Insert:
    """Read I: Int32 relation oid, `N`, TupleData."""
    relation = _known(cursor, relations)
    cursor.letter("tuple kind", "N")
    return m.Insert(relation, _new(cursor, relation))


def read_update(cursor: Cursor, relations: Relations) -> m.Update:
    """Read U: Int32 relation oid, then perhaps `K` or `O` and TupleData, then `N` and TupleData."""
    relation = _known(cursor, relations)
    kind = cursor.letter("tuple kind", "KON")
    if kind == "N":
        return m.Update(relation, None, _new(cursor, relation))
    old = _old(cursor, relation, kind)
    cursor.letter("tuple kind", "N")
    return m.Update(relation, old, _new(cursor, relation))


def read_delete(cursor: Cursor, relations: Relations) -> m.Delete:
    """Read D: Int32 relation oid, `K` or `O`, TupleData."""
    relation = _known(cursor, relations)
    return m.Delete(relation, _old(cursor, relation, cursor.letter("tuple kind", "KO")))


def read_truncate(cursor: Cursor, relations: Relations) -> m.Truncate:
    """Read T: Int32 count, Int8 options (1: CASCADE, 2: RESTART IDENTITY), as many Int32 relation oids."""
    count = cursor.int32("number of relations")
    options = cursor.flags("options", 3)
    tables = tuple(_known(cursor, relations) for _ in range(count))
    return m.Truncate(tables, cascade=bool(options & 1), restart_identity=bool(options & 2))


def _known(cursor: Cursor, relations: Relations) -> m.Relation:
    oid = cursor.int32("relation oid")
    if oid not in relations:
        expected = f"message {cursor.tag!r}: expected a RELATION message for oid {oid} before its first change"
        raise ProtocolError("protocol-sequence", f"{expected}, got none; {NEXT_STEP}")
    return relations[oid]


def _new(cursor: Cursor, relation: m.Relation) -> tuple[m.Cell, ...]:
    return _cells(cursor, relation, "kind of", "nutb")


def _old(cursor: Cursor, relation: m.Relation, kind: str) -> m.OldKey | m.OldRow:
    """Read an old tuple; the server puts TOASTed values into WAL there, so `u` cannot be."""
    cells = cast(tuple[m.KnownCell, ...], _cells(cursor, relation, "kind of old", "ntb"))
    return m.OldKey(cells) if kind == "K" else m.OldRow(cells)


def _cells(cursor: Cursor, relation: m.Relation, what: str, kinds: str) -> tuple[m.Cell, ...]:
    """Read TupleData: Int16 count, which is that of the last RELATION message, and so many columns."""
    count = cursor.int16("number of columns")
    if count != len(relation.columns):
        expected = f"{len(relation.columns)} columns of {relation}"
        raise cursor.unknown("number of columns", expected, str(count))
    return tuple(_cell(cursor, f'column "{column.name}" of {relation}', what, kinds) for column in relation.columns)


def _cell(cursor: Cursor, field: str, what: str, kinds: str) -> m.Cell:
    """Read a column of TupleData: `n` | `u` | `t` Int32 length, text | `b` Int32 length, binary."""
    match cursor.letter(f"{what} {field}", kinds):
        case "t":
            return m.Text(cursor.text(field))
        case "b":
            return m.Binary(cursor.octets(field))
        case kind:
            return m.Missing(kind)

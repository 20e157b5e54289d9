"""One message of pgoutput, protocol 1 to 4, from its bytes: a cursor with every bounds check there is, and a reader for each message.

Source: PostgreSQL documentation, "Logical Replication Message Formats", quoted in each reader. What may follow what, and which
messages are nothing but fields, is the grammar's business (`penstock.wire.pgoutput`).
"""

import struct
from collections.abc import Callable, Mapping
from typing import cast

from penstock.errors import ProtocolError
from penstock.lsn import Lsn
from penstock.wire import messages as m

NEXT_STEP = (
    "nothing of this window was confirmed; capture again, and if it comes back report it with the server's version"
)

# PostgreSQL's own names of the widths ("Message Data Types"); integers are big-endian
_unpack_int16 = struct.Struct("!H").unpack_from  # counts of columns
_unpack_int32 = struct.Struct("!I").unpack_from  # oids, xids, lengths
_unpack_signed32 = struct.Struct("!i").unpack_from  # type modifiers, -1 for none
_unpack_int64 = struct.Struct("!Q").unpack_from  # LSNs
_unpack_signed64 = struct.Struct("!q").unpack_from  # microseconds since 2000-01-01 UTC


class Cursor:
    """Walk over the bytes of one message after its type byte; raises ProtocolError on whatever does not fit.

    Readers never slice bytes themselves: they name the field they want and the cursor takes it or refuses, saying tag,
    offset, what was expected and what was there. After the last field a reader asks for the end, so leftovers are refused too.
    """

    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 1

    @property
    def tag(self) -> str:
        """Name the message by its type byte, `''` for an empty message."""
        return self._data[:1].decode("latin-1")

    def int16(self, field: str) -> int:
        """Take an unsigned number of two bytes."""
        return int(_unpack_int16(self._data, self._advance(2, field))[0])

    def int32(self, field: str) -> int:
        """Take an unsigned number of four bytes."""
        return int(_unpack_int32(self._data, self._advance(4, field))[0])

    def signed32(self, field: str) -> int:
        """Take a signed number of four bytes."""
        return int(_unpack_signed32(self._data, self._advance(4, field))[0])

    def timestamp(self, field: str) -> int:
        """Take a time: microseconds since 2000-01-01 UTC."""
        return int(_unpack_signed64(self._data, self._advance(8, field))[0])

    def lsn(self, field: str) -> Lsn:
        """Take a WAL position."""
        return Lsn(_unpack_int64(self._data, self._advance(8, field))[0])

    def letter(self, field: str, allowed: str) -> str:
        """Take one byte that must be one of the `allowed` letters."""
        at = self._advance(1, field)
        letter = chr(self._data[at])
        if letter not in allowed:
            raise self.unknown(field, f"one of {', '.join(allowed)}", repr(letter), at)
        return letter

    def flags(self, field: str, highest: int) -> int:
        """Take a byte of flags that must not exceed `highest`."""
        at = self._advance(1, field)
        flags = self._data[at]
        if flags > highest:
            raise self.unknown(field, f"0 to {highest}", str(flags), at)
        return flags

    def flag(self, field: str) -> bool:
        """Take a byte of flags of which one is known."""
        return self.flags(field, 1) == 1

    def unused(self, field: str) -> None:
        """Take a byte of flags of which none is known."""
        self.flags(field, 0)

    def string(self, field: str) -> str:
        """Take text up to its NUL byte."""
        start = self._at
        end = self._data.find(b"\0", start)
        if end < 0:
            raise self._truncated(f"a NUL at the end of {field}, which starts at offset {start}", "none")
        self._at = end + 1
        return self._text(start, end, field)

    def octets(self, field: str) -> bytes:
        """Take a length of four bytes and as many bytes."""
        size = self.int32(f"the length of {field}")
        at = self._advance(size, field)
        return self._data[at : at + size]

    def text(self, field: str) -> str:
        """Take a length of four bytes and as many bytes of UTF-8."""
        size = self.int32(f"the length of {field}")
        at = self._advance(size, field)
        return self._text(at, at + size, field)

    def end(self) -> None:
        """Refuse bytes after the last field."""
        left = len(self._data) - self._at
        if left:
            raise self._truncated(f"its end at offset {self._at}", f"{left} bytes more")

    def unknown(self, field: str, expected: str, got: str, at: int | None = None) -> ProtocolError:
        """Make the error for a field that holds something outside of the protocol."""
        offset = self._at if at is None else at
        message = f"message {self.tag!r}: expected {expected} as {field} at offset {offset}, got {got} instead"
        return ProtocolError("protocol-unknown", f"{message}; {NEXT_STEP}")

    def _advance(self, size: int, field: str) -> int:
        at = self._at
        left = len(self._data) - at
        if left < size:
            raise self._truncated(f"{size} bytes of {field} at offset {at}", f"{left}")
        self._at = at + size
        return at

    def _text(self, start: int, end: int, field: str) -> str:
        try:
            return self._data[start:end].decode("utf-8")
        except UnicodeDecodeError:
            pass  # it holds the bytes, so it must not become the context of what is raised
        raise self.unknown(field, "UTF-8", "other bytes", start)

    def _truncated(self, expected: str, got: str) -> ProtocolError:
        message = f"message {self.tag!r} of {len(self._data)} bytes: expected {expected}, got {got} instead"
        return ProtocolError("protocol-truncated", f"{message}; {NEXT_STEP}")


Relations = Mapping[int, m.Relation]
Reader = Callable[[Cursor, Relations], m.PlainMessage]


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

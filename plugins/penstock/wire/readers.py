"""One message of pgoutput, protocol 1 to 4, from its bytes: a reader for each, which takes the fields in wire order.

Source: PostgreSQL documentation, "Logical Replication Message Formats", quoted in each reader. What may follow what is the
grammar's business (`penstock.wire.pgoutput`).
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock.errors import ProtocolError
from penstock.lsn import Lsn
from penstock.wire import messages as m
from penstock.wire.cursor import NEXT_STEP, Cursor

Relations = Mapping[int, m.Relation]

# --- transactions ---------------------------------------------------------------------------------------------


def read_begin(cursor: Cursor, _: Relations) -> m.Begin:
    """Read B: Int64 final LSN, Int64 commit time, Int32 xid."""
    return m.Begin(cursor.lsn("final LSN"), cursor.timestamp("commit time"), cursor.int32("xid"))


def read_commit(cursor: Cursor, _: Relations) -> m.Commit:
    """Read C: Int8 flags (0), Int64 commit LSN, Int64 end LSN, Int64 commit time."""
    cursor.flags("flags", 0)
    return m.Commit(cursor.lsn("commit LSN"), cursor.lsn("end LSN"), cursor.timestamp("commit time"))


def read_origin(cursor: Cursor, _: Relations) -> m.Origin:
    """Read O: Int64 commit LSN at the origin, String name."""
    return m.Origin(cursor.lsn("commit LSN"), cursor.string("origin name"))


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
    key = cursor.flags("column flags", 1) == 1
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
    return tuple(_cell(cursor, relation, column.name) for column in _columns(cursor, relation))


def _old(cursor: Cursor, relation: m.Relation, kind: str) -> m.OldKey | m.OldRow:
    cells = tuple(_known_cell(cursor, relation, column.name) for column in _columns(cursor, relation))
    return m.OldKey(cells) if kind == "K" else m.OldRow(cells)


def _columns(cursor: Cursor, relation: m.Relation) -> tuple[m.RelationColumn, ...]:
    """Read the head of TupleData: Int16 count, which is that of the last RELATION message."""
    count = cursor.int16("number of columns")
    if count != len(relation.columns):
        expected = f"{len(relation.columns)} columns of {relation}"
        raise cursor.unknown("number of columns", expected, str(count))
    return relation.columns


def _cell(cursor: Cursor, relation: m.Relation, column: str) -> m.Cell:
    """Read a column of TupleData: `n` | `u` | `t` Int32 length, text | `b` Int32 length, binary."""
    kind = cursor.letter(f'kind of column "{column}" of {relation}', "nutb")
    return m.Missing.UNCHANGED if kind == "u" else _value(cursor, relation, column, kind)


def _known_cell(cursor: Cursor, relation: m.Relation, column: str) -> m.KnownCell:
    """Read a column of an old tuple; the server puts TOASTed values into WAL there, so `u` cannot be."""
    kind = cursor.letter(f'kind of old column "{column}" of {relation}', "ntb")
    return _value(cursor, relation, column, kind)


def _value(cursor: Cursor, relation: m.Relation, column: str, kind: str) -> m.KnownCell:
    if kind == "n":
        return m.Missing.NULL
    field = f'column "{column}" of {relation}'
    return m.Text(cursor.text(field)) if kind == "t" else m.Binary(cursor.octets(field))


def read_message(cursor: Cursor, _: Relations) -> m.LogicalMessage:
    """Read M: Int8 flags (1: transactional), Int64 LSN, String prefix, Int32 length, content."""
    transactional = cursor.flags("flags", 1) == 1
    return m.LogicalMessage(transactional, cursor.lsn("LSN"), cursor.string("prefix"), cursor.octets("content"))


# --- streaming of transactions in progress (protocol 2) ---------------------------------------------------------


def read_stream_start(cursor: Cursor, _: Relations) -> m.StreamStart:
    """Read S: Int32 xid, Int8 first segment (1 or 0)."""
    return m.StreamStart(cursor.int32("xid"), cursor.flags("first segment", 1) == 1)


def read_stream_stop(_cursor: Cursor, _: Relations) -> m.StreamStop:
    """Read E, which has no fields."""
    return m.StreamStop()


def read_stream_commit(cursor: Cursor, _: Relations) -> m.StreamCommit:
    """Read c: Int32 xid, Int8 flags (0), Int64 commit LSN, Int64 end LSN, Int64 commit time."""
    xid = cursor.int32("xid")
    cursor.flags("flags", 0)
    return m.StreamCommit(xid, cursor.lsn("commit LSN"), cursor.lsn("end LSN"), cursor.timestamp("commit time"))


def read_stream_abort(cursor: Cursor, _: Relations) -> m.StreamAbort:
    """Read A: Int32 xid, Int32 xid of the subtransaction."""
    return m.StreamAbort(cursor.int32("xid"), cursor.int32("subxid"))


def read_parallel_stream_abort(cursor: Cursor, _: Relations) -> m.StreamAbort:
    """Read A of protocol 4 with `streaming 'parallel'`: as above, then Int64 abort LSN, Int64 abort time."""
    xid, subxid = cursor.int32("xid"), cursor.int32("subxid")
    return m.StreamAbort(xid, subxid, cursor.lsn("abort LSN"), cursor.timestamp("abort time"))


# --- prepared transactions (protocol 3) --------------------------------------------------------------------------


def read_begin_prepare(cursor: Cursor, _: Relations) -> m.BeginPrepare:
    """Read b: Int64 prepare LSN, Int64 end LSN, Int64 prepare time, Int32 xid, String gid."""
    return m.BeginPrepare(*_prepared(cursor, "prepare"))


def read_prepare(cursor: Cursor, _: Relations) -> m.Prepare:
    """Read P: Int8 flags (0), then as b."""
    cursor.flags("flags", 0)
    return m.Prepare(*_prepared(cursor, "prepare"))


def read_stream_prepare(cursor: Cursor, _: Relations) -> m.StreamPrepare:
    """Read p: as P."""
    cursor.flags("flags", 0)
    return m.StreamPrepare(*_prepared(cursor, "prepare"))


def read_commit_prepared(cursor: Cursor, _: Relations) -> m.CommitPrepared:
    """Read K: Int8 flags (0), Int64 commit LSN, Int64 end LSN, Int64 commit time, Int32 xid, String gid."""
    cursor.flags("flags", 0)
    return m.CommitPrepared(*_prepared(cursor, "commit"))


def _prepared(cursor: Cursor, what: str) -> tuple[Lsn, Lsn, int, int, str]:
    lsn, end_lsn, time = cursor.lsn(f"{what} LSN"), cursor.lsn("end LSN"), cursor.timestamp(f"{what} time")
    return lsn, end_lsn, time, cursor.int32("xid"), cursor.string("gid")


def read_rollback_prepared(cursor: Cursor, _: Relations) -> m.RollbackPrepared:
    """Read r: Int8 flags (0), Int64 prepare end LSN, Int64 rollback end LSN, 2 x Int64 time, Int32 xid, String gid."""
    cursor.flags("flags", 0)
    prepared, rolled_back = cursor.lsn("prepare end LSN"), cursor.lsn("rollback end LSN")
    times = cursor.timestamp("prepare time"), cursor.timestamp("rollback time")
    return m.RollbackPrepared(prepared, rolled_back, *times, cursor.int32("xid"), cursor.string("gid"))

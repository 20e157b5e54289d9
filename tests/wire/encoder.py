"""A small pgoutput writer: the decoder's messages back into bytes, so that tests can make any stream.

Written from PostgreSQL's "Logical Replication Message Formats"; the case table in `cases.py` holds it against bytes
written by hand, the real servers hold both against PostgreSQL.
"""

import struct
from collections.abc import Callable, Sequence
from typing import Any

from penstock.wire import messages as m


def encode(message: m.Message) -> bytes:
    """Return the bytes of a message; one of a stream block carries its xid after the type byte."""
    if isinstance(message, m.Streamed):
        whole = encode(message.message)
        return whole[:1] + struct.pack("!I", message.xid) + whole[1:]
    return WRITERS[type(message)](message)


def string(text: str) -> bytes:
    return text.encode() + b"\0"


def octets(value: bytes) -> bytes:
    return struct.pack("!I", len(value)) + value


def namespace(name: str) -> bytes:
    return string("" if name == "pg_catalog" else name)


def tuple_data(cells: Sequence[m.Cell]) -> bytes:
    return struct.pack("!H", len(cells)) + b"".join(map(cell, cells))


def cell(value: m.Cell) -> bytes:
    match value:
        case m.Text(text):
            return b"t" + octets(text.encode())
        case m.Binary(sent):
            return b"b" + octets(sent)
        case m.Missing():
            return value.value.encode()


def old(image: m.OldKey | m.OldRow | None) -> bytes:
    if image is None:
        return b""
    return (b"K" if isinstance(image, m.OldKey) else b"O") + tuple_data(image.cells)


def relation(r: m.Relation) -> bytes:
    head = struct.pack("!cI", b"R", r.oid) + namespace(r.namespace) + string(r.name)
    columns = [struct.pack("!B", c.key) + string(c.name) + struct.pack("!Ii", c.type_oid, c.typmod) for c in r.columns]
    return head + r.replica_identity.encode() + struct.pack("!H", len(columns)) + b"".join(columns)


def truncate(t: m.Truncate) -> bytes:
    oids = [each.oid for each in t.relations]
    return struct.pack(f"!cIB{len(oids)}I", b"T", len(oids), t.cascade | t.restart_identity << 1, *oids)


def logical(message: m.LogicalMessage) -> bytes:
    head = struct.pack("!cBQ", b"M", message.transactional, message.lsn)
    return head + string(message.prefix) + octets(message.content)


def change(tag: bytes, relation: m.Relation) -> bytes:
    return struct.pack("!cI", tag, relation.oid)


def stream_abort(a: m.StreamAbort) -> bytes:
    parallel = b"" if a.abort_lsn is None else struct.pack("!Qq", a.abort_lsn, a.abort_time)
    return struct.pack("!cII", b"A", a.xid, a.subxid) + parallel


def prepared(p: Any, *fields: str) -> bytes:
    return struct.pack("!QQqI", *(getattr(p, field) for field in fields), p.xid) + string(p.gid)


PREPARE_FIELDS = ("prepare_lsn", "end_lsn", "prepare_time")
COMMIT_FIELDS = ("commit_lsn", "end_lsn", "commit_time")

WRITERS: dict[type, Callable[[Any], bytes]] = {
    m.Begin: lambda b: struct.pack("!cQqI", b"B", b.final_lsn, b.commit_time, b.xid),
    m.Commit: lambda c: struct.pack("!cBQQq", b"C", 0, c.commit_lsn, c.end_lsn, c.commit_time),
    m.Origin: lambda o: struct.pack("!cQ", b"O", o.commit_lsn) + string(o.name),
    m.Relation: relation,
    m.Type: lambda t: struct.pack("!cI", b"Y", t.oid) + namespace(t.namespace) + string(t.name),
    m.Insert: lambda i: change(b"I", i.relation) + b"N" + tuple_data(i.new),
    m.Update: lambda u: change(b"U", u.relation) + old(u.old) + b"N" + tuple_data(u.new),
    m.Delete: lambda d: change(b"D", d.relation) + old(d.old),
    m.Truncate: truncate,
    m.LogicalMessage: logical,
    m.StreamStart: lambda s: struct.pack("!cIB", b"S", s.xid, s.first_segment),
    m.StreamStop: lambda _: b"E",
    m.StreamCommit: lambda c: struct.pack("!cIBQQq", b"c", c.xid, 0, c.commit_lsn, c.end_lsn, c.commit_time),
    m.StreamAbort: stream_abort,
    m.BeginPrepare: lambda p: b"b" + prepared(p, *PREPARE_FIELDS),
    m.Prepare: lambda p: b"P\0" + prepared(p, *PREPARE_FIELDS),
    m.StreamPrepare: lambda p: b"p\0" + prepared(p, *PREPARE_FIELDS),
    m.CommitPrepared: lambda p: b"K\0" + prepared(p, *COMMIT_FIELDS),
    m.RollbackPrepared: lambda r: (
        b"r\0"
        + struct.pack("!QQqqI", r.prepare_end_lsn, r.rollback_end_lsn, r.prepare_time, r.rollback_time, r.xid)
        + string(r.gid)
    ),
}

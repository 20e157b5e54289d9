"""What the rows of one leaf say of its past, where the catalog alone does not: each question is bounded, and reads no value.

Looks are the reader's, on a session of their own, for they run functions of the leaf's owner. A row's own transaction and command show whether it was there before: `vacuum full` keeps them, TRUNCATE and a rewrite do
not; a row that a partition brought along is older than the ATTACH. What stays unknown, the caller leaves undecided.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Concatenate, ParamSpec, TypeVar

from psycopg import sql

from penstock.config.connections import Connection
from penstock.errors import SourceError
from penstock.shapes.source_table import Attach, Leaf
from penstock.source.reading import reading
from penstock.source.session import SourceSession, connect

_BLOCKS = 64
_SECONDS = 5

Params = ParamSpec("Params")
Found = TypeVar("Found")


@dataclass
class LeafRows:
    """Inspect the rows of one table's leaves; the first question that fails is the last one."""

    source: Connection
    conn: SourceSession
    failed: bool = False

    def inspect(
        self,
        question: Callable[Concatenate[LeafRows, Leaf, Params], Found],
        leaf: Leaf,
        *args: Params.args,
        **words: Params.kwargs,
    ) -> Found | None:
        """Return the answer to a question about a leaf; None for one that cannot be read, or not in time."""
        if leaf.kind != "r" or self.failed:
            return None
        try:
            return question(self, leaf, *args, **words)
        except SourceError:
            self.failed = True
            return None


@contextmanager
def looking(source: Connection, *, what: str) -> Iterator[LeafRows]:
    """Lend the way to look at the leaves of one table; raises SourceError where the reader cannot log in."""
    with connect(source, what=what, statement_timeout=_SECONDS) as conn:
        yield LeafRows(source, conn)


def kept(rows: LeafRows, leaf: Leaf, oldest_xid: int) -> bool:
    """Return whether a leaf holds a row of a transaction below `oldest_xid`, in its first blocks; raises SourceError.

    Such a row in a new file proves that the rows were moved as they were.
    """
    if not leaf.ranged:
        return False
    question = sql.SQL(
        "with now (xmax) as (select pg_snapshot_xmax(pg_current_snapshot())::text::bigint) "
        "select exists (select from only {leaf} as t cross join now cross join lateral "
        "(select (now.xmax >> 32 << 32) + t.xmin::text::bigint) as x (id) "
        "where t.ctid < {end}::tid and case when x.id > now.xmax then x.id - (1::bigint << 32) else x.id end < {oldest})"
    )
    ends = {"end": sql.Literal(f"({_BLOCKS},0)"), "oldest": sql.Literal(oldest_xid)}
    return bool(_row(rows, question.format(leaf=_name(leaf), **ends))[0])


def only_sent(rows: LeafRows, leaf: Leaf, attached: Sequence[Attach]) -> bool:
    """Return whether a leaf is empty, or holds only rows that were written after it was attached; raises SourceError.

    Proved is that only for rows of the attaching transaction itself, by its commands: other rows are not. Of a leaf that
    was not attached it returns whether it is empty.
    """
    sent = [
        sql.SQL("(t.xmin = {xid}::xid and t.cmin::text::bigint > {cid} and t.xmax = '0'::xid)").format(
            xid=sql.Literal(str(each.xid)), cid=sql.Literal(each.cid)
        )
        for each in attached
        if each.cid is not None
    ]
    proved = sql.SQL(" and ").join(sent) if sent and len(sent) == len(attached) else sql.SQL("false")
    question = sql.SQL("select exists (select from only {} as t where not ({}))")
    return not _row(rows, question.format(_name(leaf), proved))[0]


def holds_row_of(rows: LeafRows, leaf: Leaf, xid: int, command: int) -> bool:
    """Return whether a leaf holds a row that one command of a transaction wrote, untouched since; raises SourceError."""
    question = sql.SQL(
        "select exists (select from only {} as t "
        "where t.xmin = {}::xid and t.cmin::text::bigint = {} and t.xmax = '0'::xid)"
    )
    return bool(_row(rows, question.format(_name(leaf), sql.Literal(str(xid)), sql.Literal(command)))[0])


def refilled(rows: LeafRows, leaf: Leaf, xid: int) -> int | None:
    """Count the rows of a leaf that one transaction wrote and nobody has touched since; raises SourceError.

    None where one of them is not younger than the transaction's last change of the leaf itself: so the leaf was written,
    then rewritten or unlogged for a while, and its rows are not those that the stream brought.
    """
    question = sql.SQL(
        "select count(*), coalesce(bool_and(c.xmin = {xid}::xid and t.cmin::text::bigint > c.cmin::text::bigint), true) "
        "from only {leaf} as t cross join (select xmin, cmin from pg_catalog.pg_class where oid = {oid}) as c "
        "where t.xmin = {xid}::xid and t.xmax = '0'::xid"
    )
    ids = {"xid": sql.Literal(str(xid)), "oid": sql.Literal(leaf.oid)}
    count, are_younger = _row(rows, question.format(leaf=_name(leaf), **ids))
    return int(count) if are_younger else None


def empty_in(rows: LeafRows, leaf: Leaf) -> str | None:
    """Return the text of a snapshot in which a leaf is empty; None where it is not; raises SourceError."""
    question = sql.SQL("select case when not exists (select from only {}) then pg_current_snapshot()::text end").format(
        _name(leaf)
    )
    (found,) = _row(rows, question)
    return None if found is None else str(found)


def _name(leaf: Leaf) -> sql.Identifier:
    return sql.Identifier(leaf.schema, leaf.name)


def _row(rows: LeafRows, question: sql.Composed) -> tuple[Any, ...]:
    with reading(rows.source, rows.conn, _SECONDS):
        (row,) = rows.conn.ask(question)
    return row

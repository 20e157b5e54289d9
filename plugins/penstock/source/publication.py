"""The publication: made from the pipeline's patterns as a list of tables, or adopted; only one of ours is altered.

Never FOR ALL TABLES: that would make every table without a key refuse the application's updates, tables of
tomorrow included. A publication of ours carries a comment that says so.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import LiteralString

from psycopg import sql

from penstock.config.model import CHANGES, Pipeline
from penstock.errors import ConfigError, SourceError
from penstock.shapes.row_identity import require_found
from penstock.shapes.source_table import SourceTable
from penstock.source import catalog, refusals
from penstock.source.catalog import Published, Relation
from penstock.source.patterns import Choice, choose
from penstock.source.server_errors import translating
from penstock.source.session import SourceSession

_LOCK_TIMEOUT = "2s"  # a table under DDL or VACUUM must not keep capture waiting
_MARK = "made by penstock for pipeline {}"


@dataclass(frozen=True, slots=True)
class PublicationFacts:
    """Hold what the server says of a publication, but for its tables.

    `stamp` changes with every ALTER PUBLICATION of the publication itself; `age` counts transactions since then. `owned`
    says whether the session's role may alter it. `sent` names the kinds of change that it sends, and `via_root` where a
    partition's come under its root's name.
    """

    oid: int
    stamp: str
    age: int
    comment: str | None
    owned: bool
    owner: str
    all_tables: bool
    sent: Sequence[str]
    generated: bool

    @property
    def sends_old(self) -> bool:
        """Return whether it sends updates or deletes, which name old rows."""
        return bool({"update", "delete"} & set(self.sent))

    def made_for(self, pipeline: str) -> bool:
        """Return whether we made this publication for this pipeline."""
        return self.comment == _MARK.format(pipeline)


def ensure(conn: SourceSession, pipeline: Pipeline) -> int:
    """Return the oid of the pipeline's publication, which is made if there is none.

    One that exists must be ours or the pipeline must adopt it. Raises ConfigError("no-matching-tables"),
    SourceError("preflight-failed" | "no-usable-identity" | "source-auth").
    """
    found = read_publication(conn, pipeline.publication)
    if found is None:
        return _create(conn, pipeline)
    if pipeline.source.adopt or found.made_for(pipeline.name):
        return found.oid
    raise SourceError(
        "preflight-failed",
        f"expected no publication {pipeline.publication} at {conn.place}, or one made for pipeline {pipeline.name}, "
        "but there is another; set source.adopt: true to take it over, or choose another source.publication",
    )


def read_publication(conn: SourceSession, publication: str) -> PublicationFacts | None:
    """Return what the server says of a publication, or None; raises SourceError."""
    found = conn.records(PublicationFacts, "publication/publication", publication=publication)
    return found[0] if found else None


def drop(conn: SourceSession, publication: str) -> None:
    """Drop a publication; raises SourceError, "publication-missing" if there is none."""
    conn.run(drop_statement(publication).encode())


def drop_statement(publication: str) -> str:
    """Return the statement that `drop` runs."""
    return _statement("drop publication {}", publication)


def add_statement(publication: str, tables: Iterable[SourceTable]) -> str:
    """Return the statement that adds tables to the publication, for whoever owns both."""
    return _statement("alter publication {} add table {}", publication, _list(tables))


def remove_statement(publication: str, tables: Iterable[SourceTable | Relation]) -> str:
    """Return the statement that takes tables out of the publication, for its owner."""
    return _statement("alter publication {} drop table {}", publication, _list(tables))


def alter(conn: SourceSession, statement: str) -> None:
    """Run one of these statements, which waits for a table's lock no longer than a moment; raises SourceError."""
    with translating(conn.place), conn.transaction():
        conn.execute(sql.SQL("set local lock_timeout = {}").format(sql.Literal(_LOCK_TIMEOUT)))
        conn.execute(statement.encode())


def add(conn: SourceSession, publication: str, tables: Collection[SourceTable]) -> None:
    """Add tables, unless the application's updates or deletes of one would then fail.

    Raises SourceError, "no-usable-identity" for such tables.
    """
    oids = {table.oid for table in tables}
    with translating(conn.place), conn.transaction():
        alter(conn, add_statement(publication, tables))
        refusals.require_none(each for each in refusals.read_refusals(conn, publication) if each.table_oid in oids)


def no_match(choice: Choice) -> str:
    """Say which patterns match no table, and what they match instead."""
    instead = ", ".join(f"{each.qualified} is {reason}" for each, reason in choice.left_out)
    return (
        f"expected every pattern of tables.include to match a table, got none for {', '.join(choice.unmatched_include)}"
        + (f" ({instead})" if instead else "")
        + "; patterns are schema.table, case counts, and the role must look into the right database"
    )


def _create(conn: SourceSession, pipeline: Pipeline) -> int:
    choice = choose(catalog.relations(conn), pipeline.tables)
    if choice.unmatched_include:
        raise ConfigError("no-matching-tables", no_match(choice))
    tables = catalog.describe(conn, {relation.oid: Published() for relation in choice.chosen}, sizes=False)
    mark = sql.SQL("comment on publication {} is {}").format(
        sql.Identifier(pipeline.publication), sql.Literal(_MARK.format(pipeline.name))
    )
    with translating(conn.place), conn.transaction():
        conn.execute(create_statement(pipeline.publication, tables, pipeline.source.publish).encode())
        conn.execute(mark)
        refusals.require_none(refusals.read_refusals(conn, pipeline.publication))
        if {"update", "delete"} & set(pipeline.source.publish):
            require_found(tables)
        return conn.record(PublicationFacts, "publication/publication", publication=pipeline.publication).oid


def create_statement(publication: str, tables: Iterable[SourceTable], publish: Sequence[str] = CHANGES) -> str:
    """Return the statement that makes the publication, for whoever owns the tables."""
    narrowed = sql.SQL("" if set(publish) == set(CHANGES) else "publish = {}, ").format(", ".join(publish))
    listed = _list(tables)
    members = sql.SQL("for table {} ").format(listed) if listed.as_string(None) else sql.SQL("")
    text: LiteralString = "create publication {} {}with ({}publish_via_partition_root = true)"
    return _statement(text, publication, members, narrowed)


def _statement(text: LiteralString, publication: str, *parts: sql.Composable) -> str:
    return sql.SQL(text).format(sql.Identifier(publication), *parts).as_string(None)


def _list(tables: Iterable[SourceTable | Relation]) -> sql.Composed:
    # ONLY: without it a table that others inherit from would bring these along
    return sql.SQL(", ").join(sql.SQL("only {}").format(sql.Identifier(each.schema, each.name)) for each in tables)

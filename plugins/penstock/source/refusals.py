"""What the server refuses once a table is published: the application's own updates and deletes.

The server's rule is held against the catalog's rows: by the preflight, in the transaction that makes or alters the
publication, and by every check of the slot's health, because an ALTER TABLE of tomorrow can break what is fine today. The
server itself is not asked by EXPLAIN: planning would run functions of a table's owner with our rights (docs/decisions/0050).
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from psycopg import sql

from penstock.config.model import CHANGES
from penstock.errors import SourceError
from penstock.source.session import SourceSession

_FULL = "it has replica identity full, and "
_WHY = {
    "none": "it has no primary key or identity index that counts, and no REPLICA IDENTITY FULL",
    "deferrable": "its primary key is deferrable, so it is no replica identity, and it has no REPLICA IDENTITY FULL",
    "filter": "the publication's row filter uses columns outside of its replica identity: {}",
    "unlisted": "the publication's column list lacks columns of its replica identity: {}",
    "list": _FULL + "the publication has a column list for it",
    "generated": _FULL + "generated columns that the publication does not send: {}",
    "generated key": "its replica identity has generated columns that the publication does not send: {}",
}
_WAY = {
    "none": "add a primary key of columns that are not generated",
    "deferrable": "make its key not deferrable, or set its replica identity by another unique index",
    "filter": "let the filter use columns of the replica identity only",
    "unlisted": "let the publication's owner add these columns to the list, or publish all columns",
    "list": "let the publication's owner publish all its columns",
    "generated": "drop these columns, or give it a primary key and set replica identity default",
    "generated key": "set its replica identity by an index without generated columns",
}


@dataclass(frozen=True, slots=True)
class Refusal:
    """Name a relation whose updates or deletes fail because it is published, or would.

    It is the published table that `table_oid` names, or a partition of it. `fault` says why, by `columns` where there are some;
    `keyed`: it has a primary key that would do as its replica identity; `full_rows`: REPLICA IDENTITY FULL would not be refused.
    """

    oid: int
    schema: str
    name: str
    table_oid: int
    table_schema: str
    table_name: str
    fault: str
    columns: list[str]
    keyed: bool
    full_rows: bool

    @property
    def table(self) -> str:
        """Name the published table for a message."""
        return f"{self.table_schema}.{self.table_name}"

    @property
    def reason(self) -> str:
        """Say why the server refuses."""
        return _WHY[self.fault].format(", ".join(self.columns))

    @property
    def statements(self) -> tuple[str, ...]:
        """Return what ends it, where that can be known without a person's choice."""
        if self.keyed and self.fault in ("none", "list", "generated"):
            return (_alter(self.schema, self.name, "default"),)
        if self.fault in ("none", "deferrable") and self.full_rows:
            root = [] if self.oid == self.table_oid else [_alter(self.table_schema, self.table_name, "full")]
            return (*root, _alter(self.schema, self.name, "full"))
        return ()


def read_refusals(
    conn: SourceSession, publication: str, *, joining: Iterable[int] = (), publish: Collection[str] = CHANGES
) -> list[Refusal]:
    """List what refuses updates or deletes because of a publication, as if `joining` were members; raises SourceError.

    Where there is no publication, it is as if it was made for these with the kinds of change in `publish`.
    """
    return conn.records(
        Refusal, "refusals/refusals", publication=publication, joining=list(joining), publish=list(publish)
    )


def by_table(found: Iterable[Refusal]) -> dict[int, list[Refusal]]:
    """Return the refusals of each published table, by its oid."""
    tables: dict[int, list[Refusal]] = defaultdict(list)
    for each in found:
        tables[each.table_oid].append(each)
    return dict(tables)


def explained(found: Sequence[Refusal]) -> tuple[str, str]:
    """Say of one published table why the server refuses its updates or deletes, and what ends it."""
    return "; ".join(_reasons(found)), "; ".join(_ways(found))


def require_none(found: Iterable[Refusal]) -> None:
    """Raise SourceError("no-usable-identity") for these; the transaction that published the tables ends with it."""
    tables = by_table(found).values()
    if tables:
        each = ("{}: {}; {}".format(refused[0].table, *explained(refused)) for refused in tables)
        raise SourceError(
            "no-usable-identity",
            "expected every table to take the application's updates and deletes once it is published, else they fail "
            f"(SQLSTATE 55000 or 42P10); {'; '.join(each)}; or exclude the table",
        )


def _reasons(found: Sequence[Refusal]) -> Iterator[str]:
    for reason, group in groupby(sorted(found, key=lambda each: each.reason), key=lambda each: each.reason):
        parts = [f"{each.schema}.{each.name}" for each in group if each.oid != each.table_oid]
        yield f"{reason} (partition {', '.join(parts)})" if parts else reason


def _ways(found: Sequence[Refusal]) -> Iterator[str]:
    statements = dict.fromkeys(statement for each in found for statement in each.statements)
    if statements:
        yield f"run: {'; '.join(statements)}"
    yield from dict.fromkeys(_WAY[each.fault] for each in found if not each.statements)


def _alter(schema: str, name: str, identity: str) -> str:
    return f"alter table {sql.Identifier(schema, name).as_string(None)} replica identity {identity}"

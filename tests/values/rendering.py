"""The case table as a server renders it, and how values are compared with its own."""

from collections.abc import Iterator
from decimal import Decimal

import psycopg
from psycopg import sql

from penstock.values.pgtype import PgType
from tests.values.cases import CASES, FOREIGN, Case
from tests.values.conftest import Source


def cases(source: Source) -> list[Case]:
    """Return the cases that this server knows."""
    major = source.connection.info.server_version // 10000
    return [case for case in CASES if case.since <= major and (case.type != "xml" or has_xml(source))]


def has_xml(source: Source) -> bool:
    """Return whether the server was built with libxml; the embedded one was not."""
    try:
        source.execute("select '<a/>'::xml")
    except psycopg.errors.FeatureNotSupported:
        return False
    return True


def rendered(source: Source, type: str, literals: tuple[str, ...]) -> list[str | None]:
    """Return the server's texts of literals of a type."""
    values = sql.SQL(", ").join(
        sql.SQL("({}, cast({} as {}))").format(n, text, sql.SQL(type)) for n, text in enumerate(literals)
    )
    return [row[0] for row in source.texts(sql.SQL("select x from (values {}) as t(n, x) order by n").format(values))]


def foreign(source: Source) -> Iterator[tuple[PgType, list[str | None]]]:
    """Yield types with texts that no column of theirs renders, but that may come when a type changes under a window."""
    for name, texts in FOREIGN.items():
        yield source.type(name), list(texts)


def same(left: object, right: object) -> bool:
    """Compare as PostgreSQL renders: NaN is NaN, minus zero is not zero, and a scale counts."""
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, float) and isinstance(right, float):
        return repr(left) == repr(right)
    if isinstance(left, Decimal) and isinstance(right, Decimal):
        return left.as_tuple() == right.as_tuple()
    return type(left) is type(right) and left == right


def as_stored(value: object, case: Case) -> object:
    """Bring a driver's value to what differs by design: an unscaled value of a numeric with a scale below zero."""
    return value.quantize(Decimal(1)) if case.type == "numeric(3,-2)" and isinstance(value, Decimal) else value

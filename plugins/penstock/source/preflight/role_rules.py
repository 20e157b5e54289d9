"""The preflight's rules for who reads tables, and for what roles and databases set for our sessions. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from penstock.source.preflight.report import Asked, Finding, error, names, ok, quoted, warn

READER = "penstock_reader"
CAPTURE = "penstock_capture"

_WANTED = {
    "lc_messages": (r"|C|POSIX|C\..*|en([_.].*)?|English.*", "English messages, by which errors are told apart"),
    "session_replication_role": ("origin", "origin"),
    "zero_damaged_pages": ("off", "off: damaged pages would be read as empty ones"),
    "ignore_checksum_failure": ("off", "off: damaged pages would be read as whole ones"),
}
"""Settings that only a superuser changes, so that our sessions cannot; what they have to be, and why."""


def reader(asked: Asked) -> Iterator[Finding]:
    """Check that tables are read by a role that may do nothing else."""
    subject, found, role = "source.reader_connection", asked.reader, asked.role
    if found is None:
        statements = " ".join(reader_statements(role.database, _schemas(asked)))
        yield warn(
            subject,
            f"expected a role that reads tables and may do nothing else, got none: functions that their owners put into indexes "
            f"run as {quoted(role.name)}",
            f"as a superuser run: {statements} Then set a password, and name its connection as source.reader_connection",
        )
        return
    if (found.database, found.started) != (role.database, role.started):
        yield error(
            subject,
            f"expected it to lead to the database of source.connection, {role.database} on the server that started at "
            f"{role.started}, got {found.database} on one that started at {found.started}",
            "lead both connections to the same database of the same running server",
        )
    owned = [
        f"it has the rights of the owner of {quoted(each.schema, each.name)}" for each in asked.reads if each.owned
    ]
    if found.name == role.name:
        yield warn(subject, f"expected another role than {quoted(role.name)}, got the same", "make a role for it")
    elif beyond := [*found.beyond, *(owned[:1] if not found.beyond else ())]:
        yield warn(
            subject,
            f"expected role {quoted(found.name)} to have SELECT and nothing else, but {names(beyond)}: functions of tables' "
            "owners run with that",
            f"take it from the role: alter role {quoted(found.name)} nosuperuser noreplication nocreaterole nocreatedb; "
            "or make another role",
        )
    else:
        yield ok(subject, f"{quoted(found.name)} reads tables, and may do nothing else")


def unpinned(asked: Asked) -> Iterator[Finding]:
    """Name the settings of our sessions that are not what they have to be, and that we may not set."""
    for role, name, got in asked.unpinned:
        wanted, why = _WANTED[name]
        if not re.fullmatch(wanted, got):
            yield warn(
                name,
                f"expected {why}, got {got!r} for role {quoted(role)}",
                f"as a superuser run: alter role {quoted(role)} in database {quoted(asked.role.database)} set {name} = "
                f"'{'C' if name == 'lc_messages' else wanted}';",
            )


def asked_settings() -> list[str]:
    """Name the settings that `unpinned` judges."""
    return list(_WANTED)


def capture_statements(database: str) -> list[str]:
    """Return the statements that make the role that decodes."""
    name = quoted(CAPTURE)
    return [
        f"create role {name} login replication;",
        f"grant connect on database {quoted(database)} to {name};",
        f"grant pg_monitor to {name};",
    ]


def reader_statements(database: str, schemas: Iterable[str]) -> list[str]:
    """Return the statements that make the role that reads the tables of these schemas."""
    name, listed = quoted(READER), _listed(schemas)
    granted = [
        f"grant usage on schema {listed} to {name};",
        f"grant select on all tables in schema {listed} to {name};",
    ]
    return [
        f"create role {name} login;",
        f"grant connect on database {quoted(database)} to {name};",
        *(granted if listed else ()),
    ]


def later_statement(schemas: Iterable[str]) -> str:
    """Return the statement by which an owner lets the reader read tables that he makes later."""
    return f"alter default privileges in schema {_listed(schemas)} grant select on tables to {quoted(READER)};"


def _listed(schemas: Iterable[str]) -> str:
    return names(map(quoted, sorted(set(schemas))))


def _schemas(asked: Asked) -> set[str]:
    return {leaf.schema for table in asked.tables for leaf in table.leaves} | {table.schema for table in asked.tables}

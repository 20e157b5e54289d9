"""The roles and databases of the two servers, brought to what they should be on every `up`.

Source: database `shop` of its application's role, a role that decodes, and one that reads tables and may do nothing else. Control: one database
for Airflow's metadata, one for the ledger and the lake's catalog, each with a role of its own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import LiteralString

import psycopg
from psycopg import sql

from stack.servers.postgres import Server

SHOP = "shop"
SHOP_OWNER = "shop_app"
CAPTURE = "penstock_capture"
READER = "penstock_reader"
PENSTOCK = "penstock"
AIRFLOW = "airflow"


@dataclass(frozen=True)
class Role:
    """A role that logs in, with its attributes and the roles that it belongs to."""

    name: str
    attributes: LiteralString = ""
    member_of: tuple[str, ...] = ()


@dataclass(frozen=True)
class Room:
    """A database, its owner, and who else may connect to it."""

    name: str
    owner: str
    guests: tuple[str, ...] = ()


SOURCE_ROLES = (
    Role(SHOP_OWNER),
    # pg_monitor: to name the sessions that block the creation of a slot
    Role(CAPTURE, "replication", ("pg_monitor",)),
    Role(READER, "noreplication"),
)
SOURCE_ROOMS = (Room(SHOP, SHOP_OWNER, (CAPTURE, READER)),)
CONTROL_ROLES = (Role(PENSTOCK), Role(AIRFLOW))
CONTROL_ROOMS = (Room(PENSTOCK, PENSTOCK), Room(AIRFLOW, AIRFLOW))


def prepare(server: Server, roles: Sequence[Role], rooms: Sequence[Room], passwords: Mapping[str, str]) -> None:
    """Make the roles and databases that are missing, and set attributes, passwords and rights of all."""
    with server.connect() as connection:
        for role in roles:
            _prepare_role(connection, role, passwords[role.name])
        for room in rooms:
            _prepare_room(connection, room)


def system_identifier(server: Server) -> str:
    """Return what distinguishes this data folder from every other."""
    with server.connect() as connection:
        row = connection.execute("select system_identifier from pg_control_system()").fetchone()
    return str(row[0]) if row else ""


def _prepare_role(connection: psycopg.Connection, role: Role, password: str) -> None:
    name = sql.Identifier(role.name)
    if not _exists(connection, "select from pg_roles where rolname = %s", role.name):
        connection.execute(sql.SQL("create role {}").format(name))
    # What is sent, and might be logged by the server, is the SCRAM verifier, not the password.
    verifier = connection.pgconn.encrypt_password(password.encode(), role.name.encode(), b"scram-sha-256")
    connection.execute(
        sql.SQL("alter role {} login {} password {}").format(
            name,
            sql.SQL(role.attributes),
            sql.Literal(verifier.decode()),
        )
    )
    for group in role.member_of:
        connection.execute(sql.SQL("grant {} to {}").format(sql.Identifier(group), name))


def _prepare_room(connection: psycopg.Connection, room: Room) -> None:
    name = sql.Identifier(room.name)
    if not _exists(connection, "select from pg_database where datname = %s", room.name):
        connection.execute(sql.SQL("create database {} owner {}").format(name, sql.Identifier(room.owner)))
    connection.execute(sql.SQL("revoke all on database {} from public").format(name))
    for guest in room.guests:
        connection.execute(sql.SQL("grant connect on database {} to {}").format(name, sql.Identifier(guest)))


def _exists(connection: psycopg.Connection, query: str, name: str) -> bool:
    return connection.execute(query.encode(), (name,)).rowcount > 0

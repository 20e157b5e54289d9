"""The room `source` against real servers: each test on PostgreSQL 15 and 16, in a database of its own."""

from collections.abc import Callable, Iterator

import psycopg
import pytest
from psycopg import sql

from penstock.config import Pipeline
from penstock.connections import Connection
from penstock.source import session
from penstock.source.session import SourceSession
from stack.postgres import SUPERUSER, Database


def connection_to(database: Database, user: str = SUPERUSER, password: str | None = None) -> Connection:
    server = database.server
    return Connection(
        "source", "127.0.0.1", server.port, user, server.password if password is None else password, database.name
    )


@pytest.fixture
def source(database: Database) -> Connection:
    """The superuser's connection to the test's own database."""
    return connection_to(database)


@pytest.fixture
def conn(source: Connection) -> Iterator[SourceSession]:
    with session.connect(source, what="test") as conn:
        yield conn


@pytest.fixture
def writer(database: Database) -> Iterator[psycopg.Connection]:
    """The application: a session that knows nothing of Penstock, in autocommit."""
    with database.connect(application_name="the shop") as writer:
        yield writer


@pytest.fixture
def new_role(database: Database) -> Iterator[Callable[..., Connection]]:
    """A function that makes a role with these attributes and returns its connection."""
    made: list[str] = []

    def make(name: str, attributes: str = "login") -> Connection:
        full = f"{database.name}_{name}"
        statement = sql.SQL("create role {} {} password 'of the role'").format(
            sql.Identifier(full), sql.SQL(attributes)
        )
        with database.connect() as admin:
            admin.execute(statement)
        made.append(full)
        return connection_to(database, full, "of the role")

    yield make
    with database.connect() as admin:
        for name in made:
            admin.execute(sql.SQL("drop owned by {0}; drop role {0}").format(sql.Identifier(name)))


def pipeline(*include: str, **source_keys: object) -> Pipeline:
    """A pipeline over these patterns."""
    exclude = source_keys.pop("exclude", [])
    lake = source_keys.pop("lake", {})
    return Pipeline.model_validate(
        {
            "name": "shop",
            "source": source_keys,
            "tables": {"include": list(include), "exclude": exclude},
            "lake": lake,
        }
    )

"""The demo's database on each real server, made as the demo makes it, only smaller."""

from collections.abc import Iterator

import pytest

from demo import source
from stack.servers import databases
from stack.servers.postgres import Database, Server

PASSWORD = "only-for-tests"


@pytest.fixture(scope="module")
def shop(postgres: Server) -> Iterator[Database]:
    """The shop, as the demo finds it; shared by a module."""
    passwords = {role.name: PASSWORD for role in databases.SOURCE_ROLES}
    databases.prepare(postgres, databases.SOURCE_ROLES, (), passwords)
    database = Database(postgres, "shop")
    source.create(database, scale=1)
    yield database
    database.drop()


@pytest.fixture(scope="module")
def address(shop: Database) -> dict[str, str]:
    """Where the load finds the shop: libpq's environment variables, with the application's own role."""
    return shop.server.environment(shop.name) | {"PGUSER": databases.SHOP_OWNER, "PGPASSWORD": PASSWORD}

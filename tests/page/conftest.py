"""The page in Airflow's own API application, over a real ledger; pipelines and users are the test's to choose."""

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from penstock.ledger import Ledger
from stack.servers.postgres import Database, Server
from tests.ledger.conftest import connection_to
from tests.page.airflow_rows import forget
from tests.page.scenes import Scene
from tests.pipeline_env import airflow_connection

ROOT = Path(__file__).parents[2]
_numbers = itertools.count(1)


def as_airflow_has_it(database: Database, conn_id: str = "penstock_ledger") -> dict[str, str]:
    """The connection to a ledger as Airflow reads it from the environment."""
    return {f"AIRFLOW_CONN_{conn_id.upper()}": airflow_connection(database)}


@pytest.fixture(scope="session")
def pipelines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pipelines")


@pytest.fixture(scope="session")
def page_ledger(postgres16: Server) -> Iterator[Database]:
    with postgres16.temporary_database("page") as database:
        Ledger(connection_to(database)).migrate()
        yield database


@pytest.fixture(scope="session")
def airflow_app(airflow_home: Path, pipelines: Path, page_ledger: Database) -> Iterator[Any]:
    """Airflow's API server with our plugin, as `airflow api-server` makes it."""
    from airflow.api_fastapi.app import create_app, purge_cached_app  # noqa: PLC0415  # after the throw-away home

    with pytest.MonkeyPatch.context() as patch:
        settings = as_airflow_has_it(page_ledger) | {
            "PENSTOCK_PIPELINES": str(pipelines),
            "PENSTOCK_HOME": str(ROOT),
            "AIRFLOW__API_AUTH__JWT_SECRET": "only-for-tests-" * 5,
        }
        for name, value in settings.items():
            patch.setitem(os.environ, name, value)
        yield create_app(apps="core")
        purge_cached_app()


@pytest.fixture(scope="session")
def login(airflow_app: Any) -> Callable[[str | None], str]:
    """A function that returns the token of a user with this role, or with none."""
    from airflow.api_fastapi.app import get_auth_manager  # noqa: PLC0415
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser  # noqa: PLC0415

    return lambda role: get_auth_manager().generate_jwt(SimpleAuthManagerUser(username=role or "stranger", role=role))


@pytest.fixture(scope="session")
def anonymous(airflow_app: Any) -> TestClient:
    return TestClient(airflow_app)


@pytest.fixture(scope="session")
def viewer(airflow_app: Any, login: Callable[[str | None], str]) -> TestClient:
    """Somebody who may look and do nothing else."""
    return TestClient(airflow_app, headers={"Authorization": f"Bearer {login('viewer')}"})


@pytest.fixture
def scene(airflow_home: Path, page_ledger: Database, pipelines: Path) -> Iterator[Scene]:
    """A pipeline of the test's own, with a file and nothing else."""
    name = f"shop{next(_numbers)}"
    file = pipelines / f"{name}.yaml"
    file.write_text(f'name: {name}\ntables: {{include: ["shop.*"]}}\n')
    yield Scene(Ledger(connection_to(page_ledger)), page_ledger, name)
    file.unlink(missing_ok=True)
    page_ledger.execute("delete from penstock.pipeline where name = %s", name)
    forget(name)

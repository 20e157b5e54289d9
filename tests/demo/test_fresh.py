"""A demo begins from nothing, and takes nothing away that is not its own."""

from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict

from demo import fresh
from penstock.config.connections import Connection
from penstock.config.model import Pipeline
from penstock.landing.zone import LandingZone
from penstock.ledger import Ledger
from stack.servers.lake_catalog import create_tables
from stack.servers.postgres import Database

OWN, FOREIGN = ("shop", "shop.public"), ("shopping", "shop_2", "sales", "sales.shop")


def pipeline(name: str, landing: Path) -> Pipeline:
    return Pipeline.model_validate(
        {"name": name, "tables": {"include": ["public.*"]}, "landing": {"uri": str(landing)}}
    )


def zone(folder: Path) -> LandingZone:
    return LandingZone.open(str(folder), {})


@pytest.fixture
def control(database16: Database) -> Database:
    """A database with a ledger of two pipelines, and the lake's catalog with tables of both."""
    parts = conninfo_to_dict(database16.dsn())
    ledger = Ledger(
        Connection("ledger", parts["host"], int(parts["port"]), parts["user"], parts["password"], parts["dbname"])
    )
    ledger.migrate()
    for name in ("shop", "sales"):
        ledger.pipelines.register(name, database="shop", slot=f"penstock_{name}", publication=f"penstock_{name}")
        ledger.events.add(name, slug="dag-failed", message="something happened")
    create_tables(database16.dsn())
    for namespace in OWN + FOREIGN:
        database16.execute("insert into iceberg_namespace_properties values ('lake', %s, 'exists', 'true')", namespace)
        database16.execute(
            "insert into iceberg_tables (catalog_name, table_namespace, table_name) values ('lake', %s, 't')", namespace
        )
    return database16


def test_only_the_pipeline_of_the_demo_leaves_ledger_lake_landing_zone_and_warehouse(control, tmp_path: Path):
    warehouse, landing = tmp_path / "warehouse", tmp_path / "landing"
    for folder in (warehouse, landing):
        for name in ("shop", "sales", "shopping"):
            (folder / name / "below").mkdir(parents=True)

    for _ in range(2):
        fresh.forget(pipeline("shop", landing), control.dsn(), zone(landing), zone(warehouse))

    assert control.execute("select name from penstock.pipeline") == [("sales",)]
    assert control.execute("select pipeline from penstock.event") == [("sales",)]
    for table, column in (("iceberg_tables", "table_namespace"), ("iceberg_namespace_properties", "namespace")):
        assert {name for (name,) in control.execute(f"select {column} from {table}")} == set(FOREIGN)
    for folder in (warehouse, landing):
        assert sorted(path.name for path in folder.iterdir()) == ["sales", "shopping"]


def test_there_may_be_nothing_to_forget(database16: Database, tmp_path: Path):
    create_tables(database16.dsn())

    landing, warehouse = tmp_path / "landing", tmp_path / "warehouse"
    fresh.forget(pipeline("shop", landing), database16.dsn(), zone(landing), zone(warehouse))

    assert database16.execute("select to_regclass('penstock.pipeline')") == [(None,)]


def test_tasks_that_a_paused_dag_never_begins_are_not_waited_for():
    runs = [{"state": state} for state in ("queued", "running", "success", "failed")]
    states = (None, "scheduled", "queued", "running", "up_for_retry", "up_for_reschedule", "success", "failed")
    tasks = [{"task_id": f"is {state}", "state": state} for state in states]

    assert [run["state"] for run in fresh.unfinished(runs)] == ["queued", "running"]
    assert fresh.at_work(tasks) == ["is running"]

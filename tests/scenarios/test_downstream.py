"""The worked example of docs/downstream.md, as a user runs it: a DAG by Airflow, and its twin on Spark."""

import importlib.util
import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.pipeline_env import ROOT, PipelineEnv

pytestmark = pytest.mark.spark

EXAMPLES = ROOT / "docs" / "examples"
BUNDLES = [  # where Airflow looks for DAGs: as if the example had been copied to a deployment
    {
        "name": name,
        "classpath": "airflow.dag_processing.bundles.local.LocalDagBundle",
        "kwargs": {"path": str(folder)},
    }
    for name, folder in (("examples", EXAMPLES), ("dags-folder", ROOT / "dags"))
]
SHOP = """
create schema shop;
create table shop.orders (id bigint primary key, customer_id bigint, placed_at timestamptz);
create table shop.order_lines (
    order_id bigint, line_no smallint, quantity int, price numeric(10, 2), primary key (order_id, line_no)
);
"""


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def order(env: PipelineEnv, number: int, placed_at: datetime, lines: int) -> None:
    env.sql(
        f"begin; insert into shop.orders values ({number}, 1, '{placed_at.isoformat()}');"
        f"insert into shop.order_lines select {number}, n, n, 2.5 from generate_series(1, {lines}) n; commit"
    )


def publish(env: PipelineEnv) -> None:
    env.land()
    env.merge(force=True)


@pytest.mark.slow
def test_the_example_writes_each_day_once_it_is_complete_and_spark_reads_the_same(
    env16: PipelineEnv, airflow_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env16.settings |= {"tables": {"include": ["shop.*"]}}
    env16.sql(SHOP)
    now = datetime.now(UTC)
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    for number, (days, lines) in enumerate(((1, 2), (1, 0), (0, 3)), start=1):
        order(env16, number, today - timedelta(days=days) + timedelta(seconds=number), lines)
    env16.bootstrap()
    monkeypatch.setenv("EXAMPLE_PIPELINE", env16.name)
    monkeypatch.setenv("EXAMPLE_FOLDER", str(tmp_path / "days"))
    monkeypatch.setenv("AIRFLOW_CONN_PENSTOCK_CATALOG", env16.connections()["AIRFLOW_CONN_PENSTOCK_CATALOG"])
    monkeypatch.setenv("AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST", json.dumps(BUNDLES))
    example, by_spark = load("orders_by_day"), load("orders_by_day_spark")
    yesterday = str((today - timedelta(days=1)).date())

    # the copy's cut does not know by which time it is complete
    assert run(example) == []
    publish(env16)
    # what is written after the cut must not be seen, though the tables move on
    monkeypatch.setattr(example, "SLACK", timedelta(0))
    assert yesterday in run(example)
    order(env16, 9, today - timedelta(hours=1), 4)
    publish(env16)
    assert run(example) == [], "a day that has a file is done"

    rows = pq.read_table(tmp_path / "days" / f"{yesterday}.parquet").to_pylist()
    assert [(row["id"], row["lines"], row["amount"]) for row in rows] == [(1, 2, 7.5), (2, 0, None)]
    monkeypatch.setattr(by_spark, "FIRST_CUT", by_spark.FIRST_CUT.replace("interval 1 day 1 minute", "interval 1 day"))
    sales = by_spark.sales(env16.spark, "lake", env16.name, yesterday)
    assert [(row.id, row.lines, row.amount) for row in sales.collect()] == [(1, 2, 7.5), (2, 0, None)]
    assert by_spark.sales(env16.spark, "lake", env16.name, str(today.date())) is None


def run(example: Any) -> list[str]:
    """Run the example's DAG once by Airflow, and return the days that it wrote."""
    outcome = example.dag.test()
    assert outcome.state == "success"
    (task,) = outcome.get_task_instances()
    return list(task.xcom_pull(task_ids="write_complete_days") or [])

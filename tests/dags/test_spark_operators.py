"""One task may submit several applications: each with its own name and arguments."""

from pathlib import Path
from typing import Any

import pytest

from penstock.config.model import Pipeline
from penstock.errors import ConfigError
from penstock.flow.spark_job import SparkJob

SHOP = Pipeline.model_validate({"name": "shop", "tables": {"include": ["*.*"]}})


def job(name: str, *arguments: str) -> SparkJob:
    return SparkJob(name, Path(f"/{name}.py"), "plan.json", arguments, Path("/library.zip"), "1g", {}, {})


def test_a_task_that_submits_twice_submits_what_it_was_given_each_time(
    airflow_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook  # noqa: PLC0415

    from penstock.orchestration.operators import PenstockSparkOperator  # noqa: PLC0415

    monkeypatch.setenv("AIRFLOW_CONN_PENSTOCK_SPARK", '{"conn_type": "spark", "host": "local[1]"}')
    commands: list[str] = []

    def submit(hook: Any, application: str, **_: Any) -> None:
        commands.append(" ".join(hook._build_spark_submit_command(application)))

    monkeypatch.setattr(SparkSubmitHook, "submit", submit)
    operator = PenstockSparkOperator(task_id="twice", pipeline=SHOP, work=print)

    operator.submit(job("copy_tables", "--plan", "first"), {})
    operator.submit(job("merge_changes", "--plan", "second", "--result", "third"), {})

    assert [command.split("--name ")[1] for command in commands] == [
        "copy_tables /copy_tables.py --plan first",
        "merge_changes /merge_changes.py --plan second --result third",
    ]


@pytest.mark.parametrize(
    ("given", "came"),
    [
        (None, "expected an Airflow connection named penstock_spark"),
        ('{"conn_type": "postgres", "host": "db.example.com"}', "the type spark, got 'postgres'"),
        ('{"conn_type": "spark"}', "a Spark master as its host"),
    ],
)
def test_a_spark_connection_that_names_no_master_is_refused_and_not_taken_for_yarn(
    airflow_home: Path, monkeypatch: pytest.MonkeyPatch, given: str | None, came: str
) -> None:
    from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook  # noqa: PLC0415

    from penstock.orchestration.operators import PenstockSparkOperator  # noqa: PLC0415

    monkeypatch.delenv("AIRFLOW_CONN_PENSTOCK_SPARK", raising=False)
    if given is not None:
        monkeypatch.setenv("AIRFLOW_CONN_PENSTOCK_SPARK", given)
    commands: list[str] = []
    monkeypatch.setattr(SparkSubmitHook, "submit", lambda hook, application, **_: commands.append(application))
    operator = PenstockSparkOperator(task_id="none", pipeline=SHOP, work=print)

    with pytest.raises(ConfigError, match=rf"connection-missing.*{came}"):
        operator.submit(job("copy_tables"), {})
    assert commands == []


@pytest.mark.parametrize(
    "uri", ["spark://spark.example.com:7077", "k8s://https%3A%2F%2Fk8s.example.com:6443", "yarn://"]
)
def test_a_spark_connection_that_is_given_as_a_uri_is_taken(
    airflow_home: Path, monkeypatch: pytest.MonkeyPatch, uri: str
) -> None:
    from airflow.sdk import BaseHook  # noqa: PLC0415

    from penstock.orchestration.connections import require_spark  # noqa: PLC0415

    monkeypatch.setenv("AIRFLOW_CONN_PENSTOCK_SPARK", uri)
    require_spark("penstock_spark")

    assert BaseHook.get_connection("penstock_spark").conn_type == uri.partition("://")[0], "it is not taken for YARN"

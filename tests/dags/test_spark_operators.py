"""One task may submit several applications: each with its own name and arguments."""

from pathlib import Path
from typing import Any

import pytest

from penstock.flow.spark_job import SparkJob


def job(name: str, *arguments: str) -> SparkJob:
    return SparkJob(name, Path(f"/{name}.py"), arguments, Path("/library.zip"), "1g", {}, {})


def test_a_task_that_submits_twice_submits_what_it_was_told_each_time(
    airflow_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook  # noqa: PLC0415

    from penstock.orchestration.spark import CopyOperator  # noqa: PLC0415

    monkeypatch.setenv("AIRFLOW_CONN_PENSTOCK_SPARK", '{"conn_type": "spark", "host": "local[1]"}')
    commands: list[str] = []

    def submit(hook: Any, application: str, **_: Any) -> None:
        commands.append(" ".join(hook._build_spark_submit_command(application)))

    monkeypatch.setattr(SparkSubmitHook, "submit", submit)
    operator = CopyOperator(task_id="twice", pipeline="shop", conn_id="penstock_spark")

    operator.submit(job("copy_tables", "--plan", "first"), {})
    operator.submit(job("merge_changes", "--plan", "second", "--result", "third"), {})

    assert [command.split("--name ")[1] for command in commands] == [
        "copy_tables /copy_tables.py --plan first",
        "merge_changes /merge_changes.py --plan second --result third",
    ]

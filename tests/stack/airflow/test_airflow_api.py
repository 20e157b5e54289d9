"""Waiting for a DAG tells an import error of now from one that an earlier Airflow left."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from airflow.configuration import conf
from airflow.settings import engine

from stack.airflow.rest_api import AirflowApi, Json
from stack.errors import StackError


class Answers(AirflowApi):
    """An Airflow that lists the DAG at the third look, with one import error all along."""

    def __init__(self, error_at: datetime) -> None:
        super().__init__("http://127.0.0.1:1", "nobody", "")
        self.looks = 0
        self.error_at = error_at

    def dags(self) -> list[Json]:
        self.looks += 1
        return [{"dag_id": "shop.capture"}] if self.looks > 2 else []

    def import_errors(self) -> list[Json]:
        return [{"filename": "capture.py", "stack_trace": "AirflowTaskTimeout", "timestamp": self.error_at.isoformat()}]


def test_an_import_error_of_an_earlier_airflow_is_waited_out() -> None:
    api = Answers(datetime.now(UTC) - timedelta(hours=1))

    api.wait_for_dag("shop.capture")

    assert api.looks == 3


def test_an_import_error_of_now_ends_the_wait_at_once() -> None:
    api = Answers(datetime.now(UTC) + timedelta(hours=1))

    with pytest.raises(StackError, match="AirflowTaskTimeout"):
        api.wait_for_dag("shop.capture")

    assert api.looks == 1


def test_who_waits_for_a_dag_is_told_that_a_component_has_ended() -> None:
    api = Answers(datetime.now(UTC) - timedelta(hours=1))

    def ended() -> None:
        raise StackError("Airflow's four components to run", "dag-processor ended", "read the log")

    api.require_alive = ended

    with pytest.raises(StackError, match="dag-processor ended"):
        api.wait_for_dag("shop.capture")

    assert api.looks == 1


# Tests never touch the Airflow of the person who runs them.


def test_airflow_in_tests_lives_in_a_throw_away_home(airflow_home: Path):
    assert airflow_home != Path.home() / "airflow"
    assert conf.get("core", "load_examples") == "False"
    assert str(engine.url) == f"sqlite:///{airflow_home}/airflow.db"

"""Tests never touch the Airflow of the person who runs them."""

from pathlib import Path

from airflow.configuration import conf
from airflow.settings import engine


def test_airflow_in_tests_lives_in_a_throw_away_home(airflow_home: Path):
    assert airflow_home != Path.home() / "airflow"
    assert conf.get("core", "load_examples") == "False"
    assert str(engine.url) == f"sqlite:///{airflow_home}/airflow.db"

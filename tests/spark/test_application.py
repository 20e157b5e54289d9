"""What every application does around its own work."""

import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from penstock.errors import LakeError
from penstock.jobs import driver
from penstock_spark import application


def test_an_application_that_could_not_leave_its_result_refuses_before_any_work(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["merge_changes.py", "--plan", "file:///nowhere"])
    worked: list[object] = []

    with pytest.raises(SystemExit):
        application.carry_out("of-a-test", None, worked.append, lambda *_: worked.append("work"))

    assert worked == []
    assert "--result" in capsys.readouterr().err


@pytest.mark.spark
def test_an_error_with_a_name_is_left_next_to_the_plan(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text("{}")
    monkeypatch.setattr(sys, "argv", ["of-a-test", "--plan", plan.as_uri()])

    def work(*_: object) -> None:
        raise LakeError("foreign-commit", "expected _penstock_cuts at snapshot 1, got 2")

    with pytest.raises(SystemExit, match="1"):
        application.carry_out("of-a-test", None, str, work, leaves_result=False)

    left = driver.load_error(Path(driver.error_file(str(plan))).read_text())
    assert (type(left), left.slug) == (LakeError, "foreign-commit")
    assert left.message == "expected _penstock_cuts at snapshot 1, got 2"

"""A round of the torture on a real pipeline: it finds nothing where all is well, and it does find what is not."""

from pathlib import Path

import pytest

from tests.pipeline_env import PipelineEnv
from torture import stand
from torture.report import Report
from torture.rounds import Mix, Torture

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_a_round_compares_every_table_and_a_lake_that_was_changed_behind_its_back_is_found(
    env16: PipelineEnv, tmp_path: Path
) -> None:
    stand.begin(env16)
    said: list[str] = []
    report = Report(7, tmp_path / "torture.log", said.append)
    torture = Torture(env16, report, Mix(full=False, faults=False, steps=20, busy=False))

    torture.run(seconds=600, rounds=1)
    assert (report.findings, report.round) == ([], 1)
    assert report.compared >= 10
    assert report.statements > 10

    env16.spark.sql(f"delete from lake.{env16.name}.public.nest where id < 9")
    torture.compare()
    assert {(finding.kind, finding.table) for finding in report.findings} == {("difference", "public.nest")}
    assert any("FOUND difference" in line for line in said)

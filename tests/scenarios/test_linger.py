"""A merge that keeps its Spark application: real `spark-submit`, real landing zone, one cut after the other."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.cli.context import spark_submit
from penstock.flow.merge.linger import Lingering
from penstock.flow.spark_job import SparkJob
from penstock.flow.verify.compare import compare
from penstock.ledger.records import CutRecord
from stack.servers.postgres import Server
from tests.conftest import LakeCatalog
from tests.pipeline_env import PipelineEnv
from tests.scenarios.lingering import lingering_pipeline


@pytest.fixture
def env(
    postgres16: Server,
    lake: LakeCatalog,
    tmp_path: Path,
    shell_with_spark: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[PipelineEnv]:
    name = "lingering"
    for variable, value in shell_with_spark.items():
        monkeypatch.setenv(variable, value)
    with lingering_pipeline(postgres16, lake, tmp_path, name) as made:
        yield made


class Submitted:
    """Submit to a Spark of its own; `jobs` are those that were submitted, `lines` what they said."""

    def __init__(self, library: str) -> None:
        self.library = Path(library)
        self.jobs: list[SparkJob] = []
        self.lines: list[str] = []

    def __call__(self, job: SparkJob) -> None:
        self.jobs.append(job)
        spark_submit("local[2]", self.lines.append)(replace(job, py_files=self.library))


@pytest.mark.slow
def test_cuts_follow_each_other_in_one_application_until_the_lingering_ends(
    env: PipelineEnv, shell_with_spark: dict[str, str]
) -> None:
    submit, cuts = Submitted(shell_with_spark["PENSTOCK_ZIP"]), list[CutRecord]()

    def published(cut: CutRecord) -> None:
        cuts.append(cut)
        if len(cuts) <= 2:
            env.land(f"insert into item values ({1000 + len(cuts)}, 'later'); update visit set n = -n where n % 7 = 3")

    lingering = Lingering(
        env.ctx, submit, published=published, why_end=lambda: "the test has seen enough" if len(cuts) == 3 else None
    )

    assert lingering.run() == 3
    assert len(submit.jobs) == 1
    assert [cut.lsn for cut in env.ctx.ledger.merges.cuts(env.name)] == [cut.lsn for cut in reversed(cuts)]
    found = compare(env.ctx)
    assert (found.equal, found.rows) == (True, 252)

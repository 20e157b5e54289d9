"""A merge that keeps its Spark application: real `spark-submit`, real landing zone, one cut after the other."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.flow.merge.linger import Lingering
from penstock.flow.spark_job import SparkJob
from penstock.flow.verify.compare import compare
from penstock.ledger.records import CutRecord
from stack.servers.postgres import Server
from tests.conftest import LakeCatalog
from tests.env_fixtures import RealSubmit
from tests.pipeline_env import PipelineEnv
from tests.scenarios.lingering import lingering_pipeline


@pytest.fixture
def env(postgres16: Server, lake: LakeCatalog, tmp_path: Path) -> Iterator[PipelineEnv]:
    with lingering_pipeline(postgres16, lake, tmp_path, "lingering") as made:
        yield made


class Submitted:
    """Submit to a Spark of its own; `jobs` are those that were submitted, `lines` what they said."""

    def __init__(self, real_submit: RealSubmit) -> None:
        self.jobs: list[SparkJob] = []
        self.lines: list[str] = []
        self.submit = real_submit(self.lines.append)

    def __call__(self, job: SparkJob) -> None:
        self.jobs.append(job)
        self.submit(job)


@pytest.mark.slow
def test_cuts_follow_each_other_in_one_application_until_the_lingering_ends(
    env: PipelineEnv, real_submit: RealSubmit
) -> None:
    submit, cuts = Submitted(real_submit), list[CutRecord]()

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

"""A first copy that begins again says how much is done, and why the rest is copied once more."""

from pathlib import Path

import pytest

from penstock.errors import LakeError
from penstock.flow.load import bootstrap
from penstock.flow.spark_job import SparkJob
from penstock.jobs.plans import CopyPlan
from tests.pipeline_env import PipelineEnv, copy_without_spark


def test_a_copy_that_begins_again_says_what_is_done_and_why(env16: PipelineEnv) -> None:
    env16.sql(
        "create table a (id int primary key); create table b (id int primary key); insert into a values (1), (2); insert into b values (3)"
    )
    ((oid,),) = env16.sql("select 'b'::regclass::oid::bigint")
    bootstrap.prepare(env16.ctx)

    def dies_after_a(job: SparkJob) -> None:
        copy_without_spark(job)
        plan = CopyPlan.loads(Path(job.arguments[1].removeprefix("file://")).read_text())
        (env16.landing / plan.result_folder / f"{oid}.json").unlink()
        raise LakeError("spark-failed", "the driver was killed.")

    with pytest.raises(LakeError, match="spark-failed"):
        bootstrap.copy(env16.ctx, dies_after_a)
    env16.lines.clear()

    assert bootstrap.copy(env16.ctx, copy_without_spark) == ["public.b"]
    assert [line for line in env16.lines if "under a snapshot of their own" in line] == [
        "1 of 2 tables copied; the other 1 (public.b) under a snapshot of their own: the try before ended, and the snapshot "
        "that it held with it"
    ]

"""The error by which a Spark driver ends reaches whoever submitted it under its name."""

from pathlib import Path

import pytest

from penstock.errors import ConfigError, LakeError, LedgerError, PenstockError, ProtocolError, SourceError
from penstock.flow.context import Context
from penstock.flow.spark_job import SparkJob, carried_out
from penstock.jobs import driver
from penstock.source.reading import TableError
from tests.pipeline_env import PipelineEnv


@pytest.fixture
def ctx(tmp_path: Path) -> Context:
    return PipelineEnv(source=None, ledger=None, landing=tmp_path, name="shop").ctx


def ends_with(ctx: Context, error: PenstockError | None) -> PenstockError:
    """Return the error that a job is said to end with, whose driver leaves this one and exits."""
    plan = "shop/runs/a1/plan.json"

    def submit(job: SparkJob) -> None:
        if error is not None:
            ctx.landing.write_text(driver.error_file(plan), driver.dump_error(error))
        raise LakeError("spark-failed", "expected penstock:shop:merge_changes to end well, got exit code 1")

    job = SparkJob("merge", Path("merge_changes.py"), plan, (), Path("zip"), "1g", {}, {})
    with pytest.raises(PenstockError) as caught:
        carried_out(ctx, submit, job)
    return caught.value


@pytest.mark.parametrize(
    "error",
    [
        LakeError("foreign-commit", "expected snapshot 1, got 2; see the runbook"),
        LakeError("catalog-unreachable", "expected the catalog to answer"),
        SourceError("snapshot-gone", "expected the snapshot"),
        LedgerError("ledger-conflict", "expected the newest attempt"),
        ConfigError("connection-missing", "expected a connection"),
        ProtocolError("protocol-unknown", "expected a message"),
    ],
)
def test_an_error_of_the_driver_keeps_its_kind_its_name_and_its_message(ctx: Context, error: PenstockError) -> None:
    found = ends_with(ctx, error)

    assert (type(found), found.slug, found.message) == (type(error), error.slug, error.message)


def test_an_error_of_a_room_of_its_own_comes_as_one_of_the_tree(ctx: Context) -> None:
    found = ends_with(ctx, TableError("source-error", "expected to read a table"))

    assert (type(found), found.slug) == (SourceError, "source-error")


def test_a_driver_that_left_no_name_has_failed(ctx: Context) -> None:
    assert ends_with(ctx, None).slug == "spark-failed"

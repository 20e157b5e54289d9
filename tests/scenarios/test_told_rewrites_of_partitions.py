"""Partitions that are rewritten for a wider type: from file to file it is told that none was truncated by itself meanwhile."""

from __future__ import annotations

import pytest

from tests.pipeline_env import PipelineEnv
from tests.scenarios.column_changes import data_files, wrong
from tests.scenarios.told_partitions import KEPT, LOST, change, made

SHOWN = ("wider", "in_one", "empty_filled_after")


@pytest.mark.slow
def test_a_rewrite_of_partitions_is_believed_unless_one_may_have_lost_rows(landing_env: PipelineEnv) -> None:
    made(landing_env, KEPT | LOST)
    landing_env.begin()
    landing_env.ledger.execute(
        "update penstock.table set state = 'ready', complete_through = '0/1'"
    )  # as if readers saw them
    landing_env.capture()

    for name in KEPT | LOST:
        change(landing_env, name)
    landing_env.capture()

    reasons = landing_env.paused()
    assert {name: reasons[name] for name in KEPT if name in reasons} == {}
    assert LOST.keys() - reasons.keys() == set()


@pytest.mark.spark
@pytest.mark.slow
def test_wider_columns_of_partitioned_tables_are_metadata(env16: PipelineEnv) -> None:
    made(env16, SHOWN)
    env16.bootstrap()
    env16.capture()
    copied, files = env16.copies(), {name: data_files(env16, name) for name in SHOWN}

    for name in SHOWN:
        change(env16, name)
    env16.follow()

    assert wrong(env16, copied) == []
    assert all(files[name] <= data_files(env16, name) for name in SHOWN), "no old file was written again"

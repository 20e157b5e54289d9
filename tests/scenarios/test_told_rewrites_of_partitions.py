"""Partitions that are rewritten for a wider type: from file to file it is told that none was truncated by itself meanwhile."""

from __future__ import annotations

import pytest

from tests.pipeline_env import PipelineEnv
from tests.scenarios.column_changes import data_files, wrong
from tests.scenarios.told_partitions import KEPT, LOST, change, made

SHOWN = ("wider", "in_one", "empty_filled_after")


@pytest.mark.slow
def test_a_rewrite_of_partitions_is_believed_unless_one_may_have_lost_rows(landing_env: PipelineEnv) -> None:
    env = landing_env
    made(env, KEPT | LOST)
    env.begin()
    env.ledger.execute("update penstock.table set state = 'ready', complete_through = '0/1'")  # as if readers saw them
    env.capture()

    for name in KEPT | LOST:
        change(env, name)
    env.capture()

    reasons = env.paused()
    assert {name: reasons[name] for name in KEPT if name in reasons} == {}
    assert LOST.keys() - reasons.keys() == set()


@pytest.mark.spark
@pytest.mark.slow
def test_wider_columns_of_partitioned_tables_are_metadata(env16: PipelineEnv) -> None:
    env = env16
    made(env, SHOWN)
    env.bootstrap()
    env.capture()
    copied, files = env.copies(), {name: data_files(env, name) for name in SHOWN}

    for name in SHOWN:
        change(env, name)
    env.capture()
    env.merge()

    assert wrong(env, copied) == []
    assert all(files[name] <= data_files(env, name) for name in SHOWN), "no old file was written again"

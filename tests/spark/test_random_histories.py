"""Hundreds of random histories per run, split into batches anywhere, against the judge."""

from __future__ import annotations

import random

import pytest

from tests.spark.history_checks import check_bag, check_keyed
from tests.spark.workbench import Workbench

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    "full",
    [False, pytest.param(True, marks=pytest.mark.slow)],
    ids=["with the key as old image", "with the row as old image"],
)
def test_random_histories_of_keyed_tables_end_as_the_judge_says(workbench: Workbench, full: bool) -> None:
    check_keyed(workbench, 20260, histories=300, batches=3, per_batch=600, full=full)


def test_random_histories_of_tables_without_a_key_end_as_the_judge_says(workbench: Workbench) -> None:
    check_bag(workbench, 20261, histories=60, batches=3, per_batch=400)


@pytest.mark.slow
@pytest.mark.parametrize("round_", range(10))
def test_thousands_of_fresh_random_histories_end_as_the_judge_says(workbench: Workbench, round_: int) -> None:
    seed = random.SystemRandom().randrange(1 << 30)
    check_keyed(workbench, seed, histories=500, batches=5, per_batch=1500, full=round_ % 3 == 2)
    workbench.tables.clear()
    check_bag(workbench, seed, histories=200, batches=3, per_batch=1500)

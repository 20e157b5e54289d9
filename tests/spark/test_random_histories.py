"""Hundreds of random histories per run, split into batches anywhere, against the judge."""

import random

import pytest

from tests.spark import merged_histories
from tests.spark.workbench import Workbench

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    "full",
    [False, pytest.param(True, marks=pytest.mark.slow)],
    ids=["with the key as old image", "with the row as old image"],
)
def test_random_histories_of_keyed_tables_end_as_the_judge_says(workbench: Workbench, full: bool) -> None:
    for batch in merged_histories.keyed(workbench, 20260, histories=300, batches=3, per_batch=600, full=full):
        assert batch.found == batch.expected, batch.name


@pytest.mark.slow
def test_random_histories_of_tables_without_a_key_end_as_the_judge_says(workbench: Workbench) -> None:
    for batch in merged_histories.bag(workbench, 20261, histories=60, batches=3, per_batch=400):
        assert batch.found == batch.expected, batch.name


@pytest.mark.slow
@pytest.mark.parametrize("round_", range(10))
def test_thousands_of_fresh_random_histories_end_as_the_judge_says(workbench: Workbench, round_: int) -> None:
    seed = random.SystemRandom().randrange(1 << 30)
    for batch in merged_histories.keyed(
        workbench, seed, histories=500, batches=5, per_batch=1500, full=round_ % 3 == 2
    ):
        assert batch.found == batch.expected, batch.name
    workbench.tables.clear()
    for batch in merged_histories.bag(workbench, seed, histories=200, batches=3, per_batch=1500):
        assert batch.found == batch.expected, batch.name

"""Merge random histories, split into batches anywhere, and hold every table to the judge."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

from tests.spark.histories import BagJudge, KeyedJudge, Transaction
from tests.spark.outcomes import Bench
from tests.spark.random_histories import BagHistories, KeyedHistories
from tests.spark.workbench import column

COLUMNS = (column("h", "int4", key=True), column("k", key=True), column("a"), column("b"), column("c", "int4"))
EXTRA = column("d", missing="dd")


def _texts(bag: Counter[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    return Counter({tuple(None if value is None else str(value) for value in row): count for row, count in bag.items()})


def _land(bench: Bench, table: Any, transactions: Sequence[Transaction], **options: Any) -> None:
    """Land transactions as one to three windows, cut anywhere between two transactions."""
    cuts = sorted(random.Random(len(transactions)).sample(range(1, len(transactions)), 2))
    for start, end in zip([0, *cuts], [*cuts, len(transactions)], strict=True):
        bench.land(table, *transactions[start:end], **options)


def check_keyed(bench: Bench, seed: int, *, histories: int, batches: int, per_batch: int, full: bool) -> None:
    source = KeyedHistories(seed, histories, full=full)
    judge = KeyedJudge(("h", "k"))
    table = bench.table(*COLUMNS, identity="f" if full else "d")
    for batch in range(batches):
        transactions = source.transactions(per_batch)
        names = [each.name for each in table.columns]
        _land(bench, table, transactions, names=names)
        judge.apply(event for transaction in transactions for event in transaction.events)
        if batch == 1:  # a column appears in the middle of this batch
            source.add_column(EXTRA.name, EXTRA.missing_text)
            table.columns = (*table.columns, EXTRA)
            for row in judge.rows.values():
                row[EXTRA.name] = EXTRA.missing_text
            transactions = source.transactions(per_batch)
            _land(bench, table, transactions)
            judge.apply(event for transaction in transactions for event in transaction.events)
        [result] = bench.merge()

        assert result.paused_slug is None
        assert bench.rows(table) == _texts(judge.bag()), f"seed {seed}, batch {batch}"
        assert (result.counts["update_missing"], result.counts["delete_missing"], result.counts["insert_existing"]) == (
            0,
            0,
            0,
        )


def check_bag(bench: Bench, seed: int, *, histories: int, batches: int, per_batch: int) -> None:
    source, judge = BagHistories(seed, histories), BagJudge()
    table = bench.table(column("h", "int4"), column("a"), column("n", "float8"))
    for batch in range(batches):
        transactions = source.transactions(per_batch)
        _land(bench, table, transactions)
        judge.apply(event for transaction in transactions for event in transaction.events)
        [result] = bench.merge()

        assert bench.rows(table) == _texts(judge.bag()), f"seed {seed}, batch {batch}"
        assert result.counts["delete_missing"] == 0

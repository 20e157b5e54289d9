"""Merge random histories, split into batches anywhere; say what each table holds after every batch, and what the judge says."""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.jobs.plans import TableResult
from tests.spark.histories import BagJudge, KeyedJudge, Transaction
from tests.spark.outcomes import CONFLICTS, Bench
from tests.spark.random_histories import BagHistories, KeyedHistories
from tests.spark.workbench import column

COLUMNS = (column("h", "int4", key=True), column("k", key=True), column("a"), column("b"), column("c", "int4"))
EXTRA = column("d", missing="dd")


@dataclass(frozen=True)
class Merged:
    """Hold what a table was after a batch: why it was paused, the conflicts, and its rows."""

    paused: str | None
    conflicts: Counter[str]
    rows: Counter[tuple[Any, ...]]


@dataclass(frozen=True)
class Batch:
    """Hold what a batch of a history came to, and what it should have; `name` says which it was."""

    name: str
    found: Merged
    expected: Merged


def _batch(name: str, bench: Bench, table: Any, result: TableResult, judge: KeyedJudge | BagJudge) -> Batch:
    conflicts = +Counter({kind: result.counts[kind] for kind in CONFLICTS})
    found = Merged(result.paused_slug, conflicts, bench.rows(table))
    return Batch(name, found, Merged(None, Counter(), _texts(judge.bag())))


def _texts(bag: Counter[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    return Counter({tuple(None if value is None else str(value) for value in row): count for row, count in bag.items()})


def _land(bench: Bench, table: Any, transactions: Sequence[Transaction], **options: Any) -> None:
    """Land transactions as one to three windows, cut anywhere between two transactions."""
    cuts = sorted(random.Random(len(transactions)).sample(range(1, len(transactions)), 2))
    for start, end in zip([0, *cuts], [*cuts, len(transactions)], strict=True):
        bench.land(table, *transactions[start:end], **options)


def keyed(bench: Bench, seed: int, *, histories: int, batches: int, per_batch: int, full: bool) -> Iterator[Batch]:
    """Merge histories of a keyed table, which gets a column on the way."""
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

        yield _batch(f"seed {seed}, batch {batch}", bench, table, result, judge)


def bag(bench: Bench, seed: int, *, histories: int, batches: int, per_batch: int) -> Iterator[Batch]:
    """Merge histories of a table without a key."""
    source, judge = BagHistories(seed, histories), BagJudge()
    table = bench.table(column("h", "int4"), column("a"), column("n", "float8"))
    for batch in range(batches):
        transactions = source.transactions(per_batch)
        _land(bench, table, transactions)
        judge.apply(event for transaction in transactions for event in transaction.events)
        [result] = bench.merge()

        yield _batch(f"seed {seed}, batch {batch}", bench, table, result, judge)

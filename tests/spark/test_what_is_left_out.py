"""Transactions that must not be merged: those the operator skips and those that a copy already shows."""

from collections import Counter

import pytest

from tests.spark.histories import UNCHANGED, D, I, T, U, tx
from tests.spark.workbench import Workbench, column

pytestmark = pytest.mark.spark

COLUMNS = (column("k", "int4", key=True), column("a"))


def test_a_transaction_on_the_skip_list_is_left_out_and_counted(workbench: Workbench) -> None:
    table = workbench.table(*COLUMNS)
    workbench.land(table, tx(I(k=1, a="one")))
    skipped = workbench.position + 8
    workbench.land(table, tx(I(k=2, a="two"), U(k=1, a="never")), tx(I(k=3, a="three")))

    [result] = workbench.merge(skip_commit_lsns=(skipped,))

    assert workbench.rows(table) == Counter([("1", "one"), ("3", "three")])
    assert (result.counts["inserts"], result.counts["updates"], result.counts["skipped"]) == (2, 0, 2)


def test_a_batch_of_skipped_transactions_only_changes_nothing(workbench: Workbench) -> None:
    table = workbench.table(*COLUMNS)
    workbench.merge_of(table, tx(I(k=1, a="one")))
    before = table.snapshot
    workbench.land(table, tx(D(k=1)))

    [result] = workbench.merge(skip_commit_lsns=(workbench.position,))

    assert (result.pointer, result.snapshot_id, table.snapshot) == (None, before, before)


def test_changes_that_the_copy_saw_are_left_out_by_transaction_id(workbench: Workbench) -> None:
    """The copy's snapshot saw all below 100, of those below 110 all but 103 and 105, and none from 110 on."""
    table = workbench.table(*COLUMNS)
    table.land_copy([{"k": k, "a": "copied"} for k in range(1, 7)], "100:110:103,105")
    workbench.land(
        table,
        tx(U(k=1, a="seen"), xid=99),
        tx(U(k=2, a="seen"), xid=102),
        tx(U(k=3, a="new"), xid=103),
        tx(U(k=4, a="seen"), xid=109),
        tx(U(k=5, a="new"), xid=105),
        tx(U(k=6, a="new"), xid=110),
        tx(I(k=7, a="new"), U(k=7, a=UNCHANGED), xid=(1 << 32) + 5),
    )

    [result] = workbench.merge()

    new = {3, 5, 6}
    expected = [(str(k), "new" if k in new else "copied") for k in range(1, 7)]
    assert workbench.rows(table) == Counter([*expected, ("7", "new")])
    assert (result.counts["updates"], result.counts["skipped"], result.counts["insert_existing"]) == (4, 3, 0)


def test_a_truncate_that_the_copy_saw_does_not_empty_it(workbench: Workbench) -> None:
    table = workbench.table(*COLUMNS)
    table.land_copy([{"k": 1, "a": "copied"}], "100:100:")
    workbench.land(table, tx(T(), xid=90), tx(I(k=2, a="new"), xid=100))

    workbench.merge()

    assert workbench.rows(table) == Counter([("1", "copied"), ("2", "new")])

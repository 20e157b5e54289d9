"""Spark prepares and moves nothing; whoever else touches a table is noticed before or at the publish."""

from collections import Counter

import pytest

from penstock.errors import LakeError
from tests.spark.histories import D, I, U, tx
from tests.spark.workbench import Table, Workbench, column

pytestmark = pytest.mark.spark

COLUMNS = (column("k", "int4", key=True), column("a"))
ONE = Counter([("1", "one")])


@pytest.fixture
def table(workbench: Workbench) -> Table:
    made = workbench.table(*COLUMNS)
    workbench.merge_of(made, tx(I(k=1, a="one")))
    return made


def _sql(bench: Workbench, statement: str) -> None:
    bench.session().sql(statement)


def test_nothing_is_visible_before_the_pointers_are_moved(workbench: Workbench, table: Table) -> None:
    workbench.land(table, tx(U(k=1, a="two")))

    result = workbench.prepare()

    assert workbench.rows(table) == ONE
    assert workbench.publish(result)
    assert workbench.rows(table) == Counter([("1", "two")])


def test_the_published_table_says_through_which_lsn_it_is_complete(workbench: Workbench, table: Table) -> None:
    session = workbench.session()
    properties = {
        row["key"]: row["value"] for row in session.sql(f"show tblproperties {workbench.name(table)}").collect()
    }
    branches = [row["name"] for row in session.sql(f"select name from {workbench.name(table)}.refs").collect()]
    last = session.sql(f"select summary from {workbench.name(table)}.snapshots order by committed_at desc").first()

    assert (properties["penstock.lsn"], properties["penstock.pipeline"]) == ("0/6C", workbench.namespace)
    assert properties["format-version"] == "3"
    assert last["summary"]["penstock.attempt"] == properties["penstock.attempt"]
    assert branches == ["main"]


def test_every_cut_is_one_row_that_lists_the_tables(workbench: Workbench, table: Table) -> None:
    idle = workbench.table(*COLUMNS)
    broken = workbench.table(*COLUMNS)
    workbench.land(table, tx(U(k=1, a="two")))
    workbench.land(broken, tx(D(k=None)))

    workbench.merge(from_lsn=108)

    cuts = (
        workbench.session()
        .table(f"{workbench.catalog}.{workbench.namespace}._penstock_cuts")
        .orderBy("cut_lsn")
        .collect()
    )
    name = {each.oid: ".".join(each.target) for each in (table, idle, broken)}
    assert [cut["lsn"] for cut in cuts] == ["0/6C", "0/7C"]
    assert [tuple(entry) for entry in cuts[1]["tables"]] == [
        (name[table.oid], table.snapshot, 124, "ready"),
        (name[idle.oid], None, 124, "ready"),
        (name[broken.oid], None, 108, "paused"),
    ]


def test_a_table_of_cuts_that_has_lost_a_column_ends_the_run_and_says_which(workbench: Workbench, table: Table) -> None:
    _sql(workbench, f"alter table {workbench.catalog}.{workbench.namespace}._penstock_cuts drop column source_time")
    workbench.land(table, tx(U(k=1, a="two")))

    with pytest.raises(LakeError, match=r"\[foreign-commit\].*some are gone; add them again: source_time timestamp$"):
        workbench.prepare()
    assert workbench.rows(table) == ONE


def test_a_table_with_a_foreign_commit_is_paused_and_left_alone(workbench: Workbench, table: Table) -> None:
    other = workbench.table(*COLUMNS)
    _sql(workbench, f"insert into {workbench.name(table)} values (50, 'foreign', null)")
    workbench.land(table, tx(D(k=1)))
    workbench.land(other, tx(I(k=9, a="nine")))

    results = workbench.merge()

    assert [result.paused_slug for result in results] == ["foreign-commit", None]
    assert workbench.rows(table) == Counter([("1", "one"), ("50", "foreign")])
    assert workbench.rows(other) == Counter([("9", "nine")])


def test_a_table_that_was_dropped_is_paused_and_not_created_again(workbench: Workbench, table: Table) -> None:
    _sql(workbench, f"drop table {workbench.name(table)}")
    workbench.land(table, tx(I(k=2, a="two")))

    [result] = workbench.merge()

    assert result.paused_slug == "foreign-commit"
    assert not workbench.session().catalog.tableExists(workbench.name(table))


def test_a_table_of_another_owner_under_our_name_is_not_taken_over(workbench: Workbench) -> None:
    table = workbench.table(*COLUMNS, name="theirs")
    for statement in (
        f"create namespace if not exists {workbench.catalog}.{workbench.namespace}",
        f"create namespace if not exists {workbench.catalog}.{workbench.namespace}.public",
        f"create table {workbench.name(table)} (k int, a string, _misfits map<string,string>) using iceberg",
        f"insert into {workbench.name(table)} values (1, 'theirs', null)",
    ):
        _sql(workbench, statement)
    table.land_copy([{"k": 1, "a": "ours"}])

    [result] = workbench.merge()

    assert result.paused_slug == "foreign-commit"
    assert workbench.rows(table) == Counter([("1", "theirs")])


def test_a_copy_replaces_a_table_of_ours_whatever_was_committed_to_it(workbench: Workbench, table: Table) -> None:
    _sql(workbench, f"insert into {workbench.name(table)} values (50, 'foreign', null)")
    table.land_copy([{"k": 1, "a": "copied"}])

    [result] = workbench.merge()

    assert (result.paused_slug, result.counts["rows_deleted"]) == (None, 2)
    assert workbench.rows(table) == Counter([("1", "copied")])


def test_compacting_main_is_no_foreign_commit(workbench: Workbench, table: Table) -> None:
    _sql(
        workbench,
        f"call {workbench.catalog}.system.rewrite_data_files(table => '{'.'.join(table.target)}', "
        "options => map('rewrite-all', 'true'))",
    )
    workbench.land(table, tx(I(k=2, a="two")))

    [result] = workbench.merge()

    assert result.paused_slug is None
    assert workbench.rows(table) == ONE + Counter([("2", "two")])


def test_a_foreign_commit_after_the_write_makes_the_publish_refuse(workbench: Workbench, table: Table) -> None:
    other = workbench.table(*COLUMNS)
    workbench.land(table, tx(I(k=2, a="two")))
    workbench.land(other, tx(I(k=2, a="two")))
    result = workbench.prepare()
    _sql(workbench, f"alter table {workbench.name(table)} set tblproperties ('theirs' = 'x')")

    assert not workbench.publish(result)

    assert workbench.rows(table) == ONE
    assert workbench.rows(other) == Counter()
    workbench.merge()
    assert workbench.rows(table) == ONE + Counter([("2", "two")])


def test_an_attempt_that_outlived_its_successor_changes_nothing(workbench: Workbench, table: Table) -> None:
    workbench.land(table, tx(U(k=1, a="two"), I(k=2, a="two")))
    stale = workbench.prepare()
    workbench.merge()
    published = workbench.rows(table)

    assert not workbench.publish(stale)

    assert workbench.rows(table) == published == Counter([("1", "two"), ("2", "two")])
    workbench.merge_of(table, tx(D(k=2)))
    assert workbench.rows(table) == Counter([("1", "two")])


def test_a_table_without_changes_gets_no_pointer(workbench: Workbench, table: Table) -> None:
    [result] = workbench.merge()

    assert (result.pointer, result.snapshot_id) == (None, table.snapshot)

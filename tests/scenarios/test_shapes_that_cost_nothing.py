"""Changes that look like lost rows or values and are none: empty partitions, truncated tables, generated columns, new files."""

import pytest

from tests.pipeline_env import PipelineEnv
from tests.scenarios.stories import Story, catch_up, costs, tell, unlike, wrong

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PLAIN = "create table {t} (id int primary key, n int); insert into {t} select i, i from generate_series(1, 20) i"
PARTS = """
create table {t} (id int primary key, n int) partition by range (id);
create table {t}_a partition of {t} for values from (0) to (100);
create table {t}_b partition of {t} for values from (100) to (200);
insert into {t} select i, i from generate_series(1, 190) i
"""
ATTACH = (
    "create table {t}_c (like {t} including all); alter table {t} attach partition {t}_c for values from (200) to (300)"
)
ROWS = "insert into {t} (id, n) values (7, 7), (150, 1); update {t} set n = n + 1 where id = 7"
LATER = "insert into {t} (id, n) values (195, 7), (220, 1); update {t} set n = n + 1 where id = 7"
GENERATED = "create table {t} (id int, n int, g int generated always as (n * 2) stored, primary key (id))"

STORIES = {
    "attached_and_truncated": Story((ATTACH, "truncate {t}", ROWS), "leaves", PARTS),
    "attached_filled_truncated": Story(
        (ATTACH, "insert into {t} values (250, 1)", "truncate {t}", ROWS), "leaves", PARTS
    ),
    "truncated_and_attached": Story(("truncate {t}", ATTACH, "insert into {t} values (250, 1)", ROWS), "leaves", PARTS),
    "attached_then_filled": Story((ATTACH, "insert into {t} values (250, 1)", LATER), "leaves", PARTS),
    "added_and_truncated": Story(("alter table {t} add x int", "truncate {t}", ROWS, "update {t} set x = 1")),
    "added_default_truncated": Story(
        ("alter table {t} add x int default 5", "truncate {t}", ROWS, "update {t} set x = 1 where id = 7")
    ),
    "truncated_and_added": Story(
        ("truncate {t}", ROWS, "alter table {t} add x int default 5", "update {t} set x = 1 where id = 7")
    ),
    "added_truncated_parts": Story(("alter table {t} add x int default 5", "truncate {t}", ROWS), made=PARTS),
    "generated_added": Story(
        (
            "alter table {t} add g int generated always as (n * 2) stored",
            "update {t} set n = 5 where id = 9",
            "insert into {t} (id, n) values (50, 1)",
        )
    ),
    "generated_added_parts": Story(
        ("alter table {t} add g int generated always as (n * 2) stored", "update {t} set n = 5 where id = 9"),
        made=PARTS,
        cost="copy",
        with_trigger="metadata",
    ),
    "generated_retyped_parts": Story(
        ("alter table {t} alter g type bigint", "update {t} set n = 5 where id = 9"),
        made=GENERATED.replace("))", ")) partition by range (id)")
        + "; create table {t}_a partition of {t} for values from (0) to (100); insert into {t} values (9, 9), (10, 10)",
        cost="copy",
        with_trigger="metadata",
    ),
    "generated_retyped": Story(
        ("alter table {t} alter g type bigint", "update {t} set n = 5 where id = 9"),
        made=GENERATED + "; insert into {t} values (9, 9), (10, 10)",
    ),
}
V = "create table {t} (id int primary key, v text); insert into {t} values (1, 'a')"
V_PARTS = "create table {t} (id int primary key, v text) partition by range (id); create table {t}_a partition of {t} for values from (0) to (100); insert into {t} values (1, 'a')"
UPPER = (
    "begin",
    "truncate {t}",
    "insert into {t} values (7, 'seven')",
    "alter table {t} alter v type text using upper(v)",
    "commit",
    "alter table {t} alter v set statistics 5",
)
ADDED = (
    "begin",
    "truncate {t}",
    "insert into {t} values (7, 'seven')",
    "alter table {t} add x float default random()",
    "commit",
    "alter table {t} alter x set statistics 5",
)
REFILLED = {
    "leaf_truncated_too": Story(
        ("begin", "truncate {t}", "insert into {t} values (7, 7), (150, 1)", "truncate {t}_a", "commit"), "copy", PARTS
    ),
    "unlogged_too": Story(
        (
            "begin",
            "truncate {t}",
            "alter table {t}_a set unlogged",
            "insert into {t} values (7, 7)",
            "alter table {t}_a set logged",
            "commit",
        ),
        "copy",
        PARTS,
    ),
    "as_many_by_chance": Story(
        (
            "begin",
            "truncate {t}",
            "insert into {t} values (7, 7), (150, 1)",
            "truncate {t}_a",
            "alter table {t}_b set unlogged",
            "insert into {t} values (151, 1)",
            "alter table {t}_b set logged",
            "commit",
        ),
        "copy",
        PARTS,
    ),
    "same_keys_other_values": Story(
        (
            "begin",
            "truncate {t}",
            "insert into {t} values (7, 7), (150, 1)",
            "alter table {t}_b set unlogged",
            "update {t} set n = 2 where id = 150",
            "alter table {t}_b set logged",
            "commit",
        ),
        "copy",
        PARTS,
    ),
    "reloaded": Story(("begin", "truncate {t}", "insert into {t} values (7, 7), (150, 1)", "commit"), made=PARTS),
    "reloaded_plain": Story(
        ("begin", "truncate {t}", "insert into {t} values (7, 'x')", "commit", "update {t} set v = 'y'"), made=V
    ),
    "upper": Story(UPPER, "columns", V),
    "upper_parts": Story(UPPER, "copy", V_PARTS),
    "added": Story(ADDED, "columns", V),
    "added_parts": Story(ADDED, "copy", V_PARTS),
    "altered_before": Story(
        ("alter table {t} alter v type text using upper(v)", "truncate {t}", "insert into {t} values (7, 'seven')"),
        made=V,
    ),
}
SET_EXPRESSION = Story(
    ("alter table {t} alter g set expression as (n * 3)", "update {t} set n = 5 where id = 9"),
    cost="copy",
    made=STORIES["generated_retyped_parts"].made,
    with_trigger="metadata",
)
SET_EXPRESSION_PLAIN = Story(SET_EXPRESSION.steps, made=STORIES["generated_retyped"].made)


@pytest.mark.parametrize("trigger", [False, True], ids=["silent", "told"])
def test_what_changes_no_row_of_the_lake_reads_nothing_again(env: PipelineEnv, trigger: bool) -> None:
    stories = STORIES
    (version,) = (int(row[0]) for row in env.sql("show server_version_num"))
    if version >= 170000:
        stories = {**STORIES, "expression_parts": SET_EXPRESSION, "expression": SET_EXPRESSION_PLAIN}

    cost = tell(env, stories, PLAIN, trigger=trigger)

    assert unlike(stories, cost, trigger=trigger) == {}
    assert wrong(env) == []


@pytest.mark.parametrize("trigger", [False, True], ids=["silent", "told"])
def test_a_truncate_explains_no_file_where_its_transaction_wrote_rows_that_were_changed_silently(
    env: PipelineEnv, trigger: bool
) -> None:
    cost = tell(env, REFILLED, V, trigger=trigger)

    assert wrong(env) == []
    assert unlike(REFILLED, cost, trigger=trigger) == {}


def test_a_partition_that_was_only_moved_to_another_file_before_the_first_capture_is_not_read_again(
    env16: PipelineEnv,
) -> None:
    env16.bootstrap(PARTS.format(t="t"))
    copied = env16.copies()
    env16.sql("vacuum full t_a")
    env16.sql("insert into t values (195, 1)")

    catch_up(env16)

    assert costs(env16, copied) == {"t": "metadata"}
    assert wrong(env16) == []


@pytest.mark.parametrize("policy", ["keep", "drop"])
def test_a_table_is_equal_after_its_last_column_was_dropped_and_when_it_has_one_again(
    env16: PipelineEnv, policy: str
) -> None:
    env16.settings["lake"] = {"on_dropped_column": policy}
    env16.bootstrap("create table t (a int); alter table t replica identity full; insert into t values (1), (1), (2)")
    env16.sql("insert into t values (3); delete from t where a = 2; alter table t drop a")
    catch_up(env16)
    assert wrong(env16) == []

    env16.sql("insert into t default values; alter table t add b text default 'b'; insert into t values ('c')")
    catch_up(env16)
    assert wrong(env16) == []

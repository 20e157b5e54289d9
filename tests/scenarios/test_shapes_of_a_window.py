"""What happens to a table within one window, or over windows whose looks are far ahead: rows that keep large values, keys, partitions, names."""

import pytest

from penstock.flow.capture import run as capture
from penstock.lsn import Lsn
from tests.pipeline_env import PipelineEnv
from tests.scenarios.stories import begin, catch_up, costs, happen, stories, tell, unlike, wrong

pytestmark = [pytest.mark.spark, pytest.mark.slow]

MADE = """
create table {t} (id int primary key, a text, b text, c text, n int, code text not null unique);
alter table {t} alter b set storage external; alter table {t} alter c set storage external;
insert into {t} select i, 'a' || i, repeat('b' || i, 2000), repeat('c' || i, 2000), i, 'c' || i from generate_series(1, 20) i
"""
NEW = "insert into {t} select i, 'new', repeat('B' || i, 2000), repeat('C' || i, 2000), i, 'c' || i from generate_series(30, 39) i"
TOUCH = "update {t} set n = n + 1 where n % 2 = 0; update {t} set id = id + 500 where n in (5, 31); delete from {t} where n = 33"
BY_CODE = "alter table {t} drop constraint {t}_pkey, add primary key (code)"

PARTED = """
create table {t} (id int, b text, n int, code text not null, primary key (id)) partition by range (id);
alter table {t} alter b set storage external;
create table {t}_1 partition of {t} for values from (0) to (20); create table {t}_2 partition of {t} for values from (20) to (40);
create table {t}_3 partition of {t} for values from (40) to (60);
insert into {t} select i, repeat('b' || i, 2000), i, 'c' || i from generate_series(1, 59, 2) i;
create table {t}_9 (like {t} including all); insert into {t}_9 select i, 'b', i, 'c' || i from generate_series(90, 99) i
"""
PARTS = "update {t} set n = n + 1 where n % 4 = 0; update {t} set n = n - 1 where n % 4 = 3; update {t} set id = id + 21 where id = 5"
WORDS = {
    "NEW": NEW,
    "NEXT": NEW.replace("3", "6"),
    "SHORT": NEW.replace("'new', ", ""),
    "TOUCH": TOUCH,
    "GREEN": TOUCH.replace("{t}", "swapped_green"),
    "BLUE": TOUCH.replace("{t}", "swapped_blue"),
    "BY_CODE": BY_CODE,
    "PARTS": PARTS,
}
LARGE = {
    **stories(
        {
            "column_added": "NEW / alter table {t} add x text default 'x' / TOUCH / update {t} set x = 'y' where n > 10",
            "large_added": "NEW / alter table {t} add x text / update {t} set x = repeat('x', 9000) where n > 35 / TOUCH",
            "renamed": "NEW / alter table {t} rename b to large / TOUCH / begin / NEXT / alter table {t} rename c to d / TOUCH / commit",
            "swapped": "NEW / begin / TOUCH / alter table {t} rename b to x / alter table {t} rename c to b; "
            "alter table {t} rename x to c / TOUCH / commit",
            "large_dropped": "NEW / TOUCH / alter table {t} drop b / TOUCH",
            "another_dropped": "NEW / alter table {t} drop a / TOUCH / alter table {t} rename c to a / TOUCH",
            "dropped_and_added": "NEW / TOUCH / alter table {t} drop b / TOUCH / alter table {t} add b text / "
            "update {t} set b = repeat('z', 9000) where n > 34 / TOUCH",
            "key_changed": "NEW / TOUCH / BY_CODE / TOUCH / update {t} set code = 'm' || code where n > 30 / TOUCH",
            "key_and_name": "NEW / begin / TOUCH / BY_CODE / alter table {t} rename b to large; "
            "alter table {t} rename code to b / update {t} set b = 'm' || b where n > 30 / TOUCH / commit",
            "whole_rows": "NEW / TOUCH / alter table {t} replica identity full / TOUCH / alter table {t} rename b to x / "
            "TOUCH / alter table {t} replica identity default / TOUCH",
            "truncated": "NEW / begin / TOUCH / truncate {t} / alter table {t} add x int default 3, drop a / SHORT / TOUCH / commit / TOUCH",
        },
        WORDS,
    ),
    **stories(
        {
            "wider": "NEW / alter table {t} alter n type bigint / TOUCH / update {t} set n = 5000000001 where n = 37 / TOUCH",
            "renamed_truncated": "NEW / begin / alter table {t} rename b to x / truncate {t} / NEW / commit / TOUCH",
            "truncated_twice": "NEW / begin / truncate {t} / NEW / alter table {t} alter n type bigint / truncate {t} / "
            "NEW / TOUCH / commit / TOUCH",
        },
        WORDS,
        cost="columns",
        with_trigger="metadata",
    ),
    **stories(
        {
            "wider_key": "NEW / TOUCH / alter table {t} alter id type bigint / TOUCH / "
            "update {t} set id = 5000000001 where id = 35 / TOUCH",
        },
        WORDS,
        cost="copy",
        with_trigger="metadata",
    ),
    **stories(
        {
            "large_retyped": "NEW / alter table {t} alter b type text using b || 'x' / TOUCH",
            "fetched": "NEW / TOUCH / alter table {t} add u uuid default gen_random_uuid() / TOUCH / "
            "alter table {t} rename b to x / TOUCH",
        },
        WORDS,
        cost="columns",
    ),
}
"""Rows of before and of the window itself, updated without their large values, before and after the table changed."""

TREES = {
    **stories(
        {
            "attached": "PARTS / alter table {t} attach partition {t}_9 for values from (90) to (100) / PARTS",
            "attached_and_renamed": "PARTS / alter table {t} attach partition {t}_9 for values from (90) to (100) / "
            "alter table {t} rename b to x / PARTS",
        },
        WORDS,
        cost="leaves",
        made=PARTED,
    ),
    **stories(
        {
            "dropped": "PARTS / drop table {t}_2 / PARTS",
            "detached": "PARTS / alter table {t} detach partition {t}_2 / update {t}_2 set n = 0 / PARTS",
            "detached_slowly": "PARTS / alter table {t} detach partition {t}_2 concurrently / update {t}_2 set n = 0 / PARTS",
            "truncated_leaf": "PARTS / truncate {t}_2",
            "dropped_and_renamed": "PARTS / alter table {t} rename b to x / PARTS / drop table {t}_3 / PARTS",
            "created": "PARTS / create table {t}_4 partition of {t} for values from (60) to (80) / "
            "insert into {t} values (61, 'b', 4, 'x') / PARTS",
        },
        WORDS,
        made=PARTED,
    ),
    **stories(
        {
            "swapped_blue": "TOUCH / begin / alter table swapped_blue rename to x / "
            "alter table swapped_green rename to swapped_blue / alter table x rename to swapped_green / commit / GREEN",
            "swapped_green": "alter table swapped_blue rename a to was_green / BLUE",
        },
        WORDS,
    ),
}


@pytest.mark.parametrize("trigger", [False, True], ids=["without_the_trigger", "with_the_trigger"])
def test_rows_keep_large_values_over_every_change_of_their_window(env: PipelineEnv, trigger: bool) -> None:
    found = tell(env, LARGE, MADE, trigger=trigger)

    assert wrong(env) == []
    assert unlike(LARGE, found, trigger=trigger) == {}


@pytest.mark.parametrize("trigger", [False, True], ids=["without_the_trigger", "with_the_trigger"])
def test_partitions_and_names_change_with_and_without_the_trigger(env: PipelineEnv, trigger: bool) -> None:
    env.settings["lake"] = {"on_dropped_partition": "follow"}
    found = tell(env, TREES, MADE, trigger=trigger)

    assert wrong(env) == []
    swapped = {"swapped_blue": "swapped_green", "swapped_green": "swapped_blue"}
    assert unlike(TREES, {name: found[swapped.get(name, name)] for name in TREES}, trigger=trigger) == {}


FAR_AHEAD = stories(
    {
        "added_then_dropped": "alter table {t} add x text / update {t} set x = 'x' where id = 1 / | / "
        "alter table {t} drop a / update {t} set x = 'y' where id = 2 / |",
        "dropped_then_added": "alter table {t} drop a / update {t} set n = 0 where id = 1 / "
        "alter table {t} add x text / update {t} set x = 'y' where id = 2 / | / update {t} set x = 'z'",
        "in_each_window": "update {t} set n = 0 / | / alter table {t} drop a / update {t} set n = 1 / | / "
        "alter table {t} add a text / update {t} set a = 'new'",
        "names_passed_on": "alter table {t} drop a / TOUCH / | / alter table {t} rename code to a / TOUCH / "
        "alter table {t} add code int / TOUCH / | / update {t} set code = 7",
    },
    WORDS,
)


def test_windows_that_end_before_the_look_that_read_them_are_read_together(env: PipelineEnv) -> None:
    """The catalog shows each window's columns as they are after the last one."""
    begin(env, FAR_AHEAD, MADE, trigger=False)
    copied, ends = env.copies(), list[Lsn]()
    waiting = {name: list(story.steps) for name, story in FAR_AHEAD.items()}
    while any(waiting.values()):
        for name, steps in waiting.items():
            while steps and (step := steps.pop(0)) != "|":
                happen(env, name, (step,))
        ends.append(Lsn.parse(str(env.sql("select pg_current_wal_flush_lsn()::text")[0][0])))
    for end in ends:
        capture.capture_window(env.ctx, limit=end)
        env.merge()
    catch_up(env)

    assert wrong(env) == []
    assert unlike(FAR_AHEAD, costs(env, copied), trigger=False) == {}

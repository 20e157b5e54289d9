"""Partitions that are dropped or detached: their rows go from the lake, at one place of the stream, without a copy."""

import pytest

from penstock.flow.merge import run as merge
from penstock.flow.spark_job import SparkJob
from penstock.flow.verify.compare import compare
from tests.faults.harness import killed
from tests.faults.steps import Step
from tests.pipeline_env import PipelineEnv

MONTHS = [f"from ('2026-0{month}-01') to ('2026-0{month + 1}-01')" for month in (1, 2, 3)]
LEAVES = {
    "ints": ("id int", "range (id)", ["from (0) to (100)", "from (100) to (200)", "from (-100) to (0)"], "{n}"),
    "bigs": (
        "id bigint",
        "range (id)",
        ["from (5000000000) to (6000000000)", "from (0) to (100)", "from (100) to (200)"],
        "5000000000 + {n}",
    ),
    "days": (
        "id int, d date not null",
        "range (d)",
        MONTHS,
        "{n}, date '2026-01-01' + {n}",
    ),
    "times": (
        "id int, at timestamp not null",
        "range (at)",
        MONTHS,
        "{n}, timestamp '2026-01-01 12:00' + {n} * interval '1 day'",
    ),
    "zones": (
        "id int, at timestamptz not null",
        "range (at)",
        ["from ('2026-01-01 +02') to ('2026-02-01')", MONTHS[1], "from ('2026-03-01') to (maxvalue)"],
        "{n}, timestamptz '2026-01-01 12:00 +00' + {n} * interval '1 day'",
    ),
    "texts": (
        "id int, region text not null",
        "list (region)",
        ["in ('eu', 'O''Hare')", "in ('us')", "in ('asia')"],
        "{n}, (array['eu','us','O''Hare'])[1 + {n} % 3]",
    ),
    "hashes": (
        "id int",
        "hash (id)",
        ["with (modulus 3, remainder 0)", "with (modulus 3, remainder 1)", "with (modulus 3, remainder 2)"],
        "{n}",
    ),
}


def made() -> str:
    return "".join(
        f"create table {name} ({columns}, s text) partition by {by}; alter table {name} replica identity full;"
        + "".join(leaf(f"{name}_{n}", name, bound) for n, bound in enumerate(leaves))
        for name, (columns, by, leaves, _) in LEAVES.items()
    )


def leaf(name: str, root: str, bound: str) -> str:
    made = "default" if bound == "default" else f"for values {bound}"
    return f"create table {name} partition of {root} {made}; alter table {name} replica identity full;"


def filled(name: str, first: int, last: int) -> str:
    *_, row = LEAVES[name]
    values = row.format(n="n")
    return f"insert into {name} select {values}, 's' || n from generate_series({first}, {last}) n;"


def test_the_rows_of_a_partition_that_is_gone_go_from_the_lake_and_nothing_is_copied(env: PipelineEnv) -> None:
    env.settings["lake"] = {"on_dropped_partition": "follow"}
    env.settings["tables"] = {"include": ["public.*"], "exclude": ["public.days_0"]}
    env.bootstrap(made() + "".join(filled(name, 1, 20) for name in LEAVES))
    copied = env.copies()

    # rows of the same window, an update within it, and one of two ways
    for name in LEAVES:
        gone = f"drop table {name}_0" if name != "days" else f"alter table {name} detach partition {name}_0"
        env.sql(f"{filled(name, 21, 25)} update {name} set s = s || '+' where id % 2 = 0; {gone}")
    env.come_to_rest(4)

    assert states(env).pop("hashes")[0] == "paused", states(env)
    assert {name: state for name, (state, _) in states(env).items() if name != "hashes"} == dict.fromkeys(
        LEAVES.keys() - {"hashes"}, "ready"
    ), states(env)
    assert {table.name for table in compare(env.ctx).tables if not table.equal} == {"hashes"}
    assert env.copies() == copied

    # the same bounds again: what comes then stays
    for name, (_, _, leaves, _) in LEAVES.items():
        if name != "hashes":
            env.sql(leaf(f"{name}_again", name, leaves[0]) + filled(name, 1, 9))
    env.come_to_rest(4)
    assert {table.name for table in compare(env.ctx).tables if not table.equal} == {"hashes"}


DEEP = """
create table deep (id int, d date not null, s text, primary key (id, d, s)) partition by range (d);
create table deep_jan partition of deep for values from ('2026-01-01') to ('2026-02-01') partition by hash (id);
create table deep_jan_0 partition of deep_jan for values with (modulus 2, remainder 0);
create table deep_jan_1 partition of deep_jan for values with (modulus 2, remainder 1);
create table deep_feb partition of deep for values from ('2026-02-01') to ('2026-03-01') partition by list (s);
create table deep_feb_a partition of deep_feb for values in ('a');
create table deep_feb_b partition of deep_feb for values in ('b', 'c');
create table deep_rest partition of deep for values from ('2026-03-01') to (maxvalue);
insert into deep select n, date '2026-01-01' + n, (array['a', 'b'])[1 + n % 2] from generate_series(1, 70) n;
"""


@pytest.mark.slow
def test_a_partition_that_is_made_again_in_the_same_transaction_or_before_the_next_look_keeps_its_new_rows(
    env16: PipelineEnv,
) -> None:
    env16.settings["lake"] = {"on_dropped_partition": "follow"}
    env16.bootstrap(DEEP)
    copied = env16.copies()

    # whole branch below the table, whose leaves have no bounds that the lake can compare
    env16.land("update deep set id = id + 1000 where id = 5; delete from deep where id = 6; drop table deep_jan")
    env16.come_to_rest(
        4,
        "create table deep_new partition of deep for values from ('2026-01-10') to ('2026-02-01');"
        "insert into deep values (7, '2026-01-12', 'new'), (8, '2026-01-13', 'new')",
    )
    assert env16.unlike() == []
    assert env16.lake_rows("deep", "count(*)") == env16.sql("select count(*) from deep")

    env16.sql(
        "begin; insert into deep values (9, '2026-02-05', 'a'); update deep set d = '2026-03-05' where id = 40;"
        "drop table deep_feb_a; commit"
    )
    env16.come_to_rest(4, "insert into deep values (10, '2026-02-05', 'b')")
    assert env16.unlike() == []
    assert states(env16)["deep"] == ("ready", None)
    assert env16.copies() == copied


@pytest.mark.slow
def test_rows_of_a_truncated_partition_go_and_what_it_takes_later_stays(env: PipelineEnv) -> None:
    env.settings["lake"] = {"on_dropped_partition": "follow"}
    env.bootstrap(DEEP + "insert into deep values (900, '2026-01-02', 'a')")
    copied = env.copies()

    env.come_to_rest(4, "insert into deep values (901, '2026-02-07', 'a'); truncate deep_feb_a")
    assert env.unlike() == []
    env.come_to_rest(4, "insert into deep values (902, '2026-02-07', 'a')")
    assert env.unlike() == []
    assert states(env)["deep"] == ("ready", None)
    assert env.copies() == copied

    files = env.data_files("deep")
    env.come_to_rest(4, "drop table deep_jan")
    assert env.unlike() == []
    written = env.data_files("deep") - files
    assert {file.rpartition("-")[2] for file in written} == {"deletes.puffin"}

    # what is not empty cannot be told from a rewrite that lost rows
    env.come_to_rest(4, "begin; truncate deep_feb_a; insert into deep values (903, '2026-02-07', 'a'); commit")
    assert states(env)["deep"][0] == "paused"


KILLED = [
    (Step.MARK_ADDED, "after"),
    (Step.TABLES_SAVED, "before"),
    (Step.TABLES_SAVED, "after"),
    (Step.WINDOW_STAGED, "before"),
    (Step.WINDOW_STAGED, "after"),
]


@pytest.mark.slow
def test_captures_and_merges_that_are_killed_while_rows_of_a_partition_go_leave_no_difference(
    env16: PipelineEnv,
) -> None:
    env16.settings["lake"] = {"on_dropped_partition": "follow"}
    leaves = "".join(
        f"create table many_{n} partition of many for values from ({n * 10}) to ({n * 10 + 10});" for n in range(8)
    )
    env16.sql("create table many (id int primary key, s text) partition by range (id);" + leaves)
    env16.bootstrap("insert into many select n, 's' from generate_series(0, 79) n")
    copied = env16.copies()

    for n, (step, when) in enumerate(KILLED):
        env16.sql(f"update many set s = s || '+' where id % 3 = 0; drop table many_{n}")
        killed(env16, "capture", step, when)
        if when == "before" or step == Step.MARK_ADDED:
            env16.capture()  # no look was kept yet: rows that come into the bounds before one cannot be told from the lost ones
        env16.sql(f"create table again_{n} partition of many for values from ({n * 10}) to ({n * 10 + 5})")
        env16.sql(f"insert into many values ({n * 10}, 'again')")

    def dies(job: SparkJob) -> None:
        env16.submit(job)
        raise InterruptedError

    env16.land("drop table many_6")
    with pytest.raises(InterruptedError):
        merge.merge(env16.ctx, dies)
    env16.come_to_rest(4)
    assert states(env16)["many"] == ("ready", None)
    assert env16.unlike() == []
    assert env16.copies() == copied


@pytest.mark.slow
def test_bounds_that_are_taken_again_before_the_lake_has_let_go_and_unchosen_ones_pause_the_table(
    env16: PipelineEnv,
) -> None:
    env16.bootstrap(
        made() + "create table other (id int primary key);" + "".join(filled(name, 1, 20) for name in LEAVES)
    )
    env16.come_to_rest(4, "drop table bigs_0")
    assert "lake.on_dropped_partition" in (states(env16)["bigs"][1] or "")

    env16.settings["lake"] = {"on_dropped_partition": "follow"}
    env16.sql("drop table ints_0;" + leaf("ints_again", "ints", "from (0) to (50)"))
    env16.land("drop table days_0;" + leaf("days_rest", "days", "default"))
    assert (states(env16)["ints"][0], states(env16)["days"][0]) == ("paused", "paused")

    env16.land("alter table times detach partition times_0")
    env16.come_to_rest(
        4,
        "delete from times_0;"
        "alter table times attach partition times_0 for values from ('2026-01-01') to ('2026-02-01');"
        "insert into times values (1, '2026-01-20', 'new')",
    )
    assert all(table.equal for table in compare(env16.ctx).tables if states(env16)[table.name][0] == "ready")


def states(env: PipelineEnv) -> dict[str, tuple[str, str | None]]:
    return {table.name: (table.state, table.paused_reason) for table in env.tables}

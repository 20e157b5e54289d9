"""A partitioned table without a partition that holds logged rows is a finished copy of no rows; its later rows are merged.

That is the usual order with pg_partman: the table is made and published, then its partitions. Partitions that are
unlogged or foreign hold rows that no stream carries.
"""

import pytest

from penstock.flow import check
from penstock.flow.load import bootstrap
from penstock.flow.load import run as rebuild
from tests.pipeline_env import PipelineEnv
from tests.scenarios.members import states

TABLES = """
create table t (id int primary key); insert into t values (1);
create table none (id int, v text, primary key (id)) partition by range (id);
create table deep (id int, v text, primary key (id)) partition by range (id);
create table deep_1 partition of deep for values from (0) to (100) partition by range (id);
create table fast (id int, v text, primary key (id)) partition by range (id);
create unlogged table fast_1 partition of fast for values from (0) to (100);
insert into fast values (1, 'in no WAL');
create foreign data wrapper nothing; create server nowhere foreign data wrapper nothing;
create table afar (id int, v text) partition by range (id);
create foreign table afar_1 partition of afar for values from (0) to (100) server nowhere;
alter table afar replica identity full;
"""
LATER = """
create table none_1 partition of none for values from (0) to (100);
create table deep_1_1 partition of deep_1 for values from (0) to (100);
create table fast_2 partition of fast for values from (100) to (200);
create table afar_2 partition of afar for values from (100) to (200);
alter table afar_2 replica identity full;
insert into none values (1, 'a'), (2, 'b'); update none set v = 'c' where id = 2;
insert into deep values (1, 'a');
insert into fast values (101, 'logged');
insert into afar values (101, 'logged');
"""
EMPTY = ("afar", "deep", "fast", "none")


def lacks(env: PipelineEnv) -> list[str]:
    """Capture, merge, and return what differs then."""
    env.follow()
    return env.unlike()


def test_the_first_copy_of_a_table_without_partitions_ends(env16: PipelineEnv) -> None:
    env16.begin(TABLES)

    assert env16.ctx.ledger.pipelines.get(env16.name).state == "running"
    assert states(env16) == dict.fromkeys((*EMPTY, "t"), "copied")


def test_a_pipeline_of_nothing_but_tables_without_partitions_needs_no_spark_to_copy(env16: PipelineEnv) -> None:
    env16.prepare("create table none (id int primary key) partition by range (id)")

    bootstrap.copy(env16.ctx, lambda job: pytest.fail("there is nothing to read"))

    assert states(env16) == {"none": "copied"}


def test_check_names_the_partitions_whose_rows_no_stream_carries(env16: PipelineEnv) -> None:
    env16.sql(TABLES)

    bootstrap.prepare(env16.ctx)

    said = [(finding.subject, finding.message) for finding in check.check(env16.ctx) if finding.level == "warn"]

    for table in ("fast", "afar"):
        (message,) = (
            message for subject, message in said if subject == f"public.{table}" and "not in the WAL" in message
        )
        assert f"public.{table}_1; it has no other partition, so the table is empty in the lake" in message


@pytest.mark.slow
@pytest.mark.spark
def test_rows_of_partitions_that_are_made_later_are_merged_after_bootstrap_joining_and_resync(
    env16: PipelineEnv,
) -> None:
    env16.bootstrap(TABLES)
    assert states(env16) == dict.fromkeys((*EMPTY, "t"), "ready")
    env16.land("create table joined (id int, v text, primary key (id)) partition by range (id)")

    ids = rebuild.resync(env16.ctx, None, env16.submit)
    ids += rebuild.resync(env16.ctx, ["public.none"], env16.submit)
    assert rebuild.switch(env16.ctx, ids, env16.submit)
    assert states(env16)["joined"] == "ready"

    env16.sql(LATER)
    env16.sql(
        "create table joined_1 partition of joined for values from (0) to (9); insert into joined values (1, 'a')"
    )
    assert lacks(env16) == []
    assert sorted(env16.lake_rows("none", "id, v")) == [(1, "a"), (2, "c")]
    assert env16.lake_rows("fast", "id") == [(101,)]
    assert set(states(env16).values()) == {"ready"}


@pytest.mark.spark
def test_partitions_of_tables_that_hold_no_row_are_dropped_and_every_table_stays_ready(env16: PipelineEnv) -> None:
    env16.settings["lake"] = {"on_dropped_partition": "follow"}
    names = ("empty", "emptied", "gone", "other")
    for name in names:
        env16.sql(
            f"create table {name} (id int, v text, primary key (id)) partition by range (id);"
            f"create table {name}_1 partition of {name} for values from (0) to (100);"
            f"create table {name}_2 partition of {name} for values from (100) to (200)"
        )
    env16.bootstrap("insert into emptied values (1, 'a'), (101, 'b'); insert into gone values (1, 'a')")
    env16.sql("truncate emptied; delete from gone")
    assert lacks(env16) == []

    env16.sql("".join(f"drop table {name}_2;" for name in names))  # a retention job, on a Sunday

    env16.come_to_rest(1)
    assert states(env16) == dict.fromkeys(names, "ready")
    env16.come_to_rest(1, "".join(f"insert into {name} values (2, 'later');" for name in names))
    assert set(states(env16).values()) == {"ready"}
    assert env16.unlike() == []

"""DDL while first copies wait for their cut: the first cuts follow it as every other does, and nothing sticks."""

import pytest

from penstock.source import ddl_trigger
from tests.pipeline_env import PipelineEnv

pytestmark = [pytest.mark.spark, pytest.mark.slow]

TABLES = """
create table plain (id int primary key, a text, n int);
insert into plain select i, 'a', i from generate_series(1, 60) i;
create table keyless (a text, n int);
alter table keyless replica identity full;
insert into keyless select 'k' || i, i from generate_series(1, 20) i;
create table named (id int primary key, v text);
insert into named select i, 'v' from generate_series(1, 30) i;
create table parted (id int primary key, a text, n int) partition by range (id);
create table parted_1 partition of parted for values from (0) to (100);
create table parted_2 partition of parted for values from (100) to (200);
insert into parted select i, 'a', i from generate_series(1, 199, 7) i;
"""
COPIED = """
alter table plain rename a to a_; update plain set a_ = 'renamed' where id % 3 = 0;
alter table plain add x int default 7; update plain set x = 0 where id % 5 = 0;
alter table keyless add y text default 'y'; delete from keyless where n % 4 = 0;
alter table named rename to renamed; insert into renamed values (100, 'new');
create table parted_3 partition of parted for values from (200) to (300); insert into parted values (250, 'new', 1);
"""
LATER = """
alter table plain alter n type bigint; update plain set n = n + 5000000000;
alter table plain drop column a_; insert into plain (id, n) values (1000, 1);
drop table parted_1; update parted set n = 0 where id > 150;
alter table keyless drop column n;
"""


@pytest.fixture(params=[False, True], ids=["without the trigger", "with the trigger"])
def begun(request: pytest.FixtureRequest, env16: PipelineEnv) -> PipelineEnv:
    env16.settings["lake"] = {"on_dropped_partition": "follow"}
    if request.param:
        env16.settings["source"] = {**env16.settings["source"], "ddl_trigger": True}
        env16.sql(ddl_trigger.install_statement())
    env16.begin(TABLES)
    return env16


def alone(env: PipelineEnv, statements: str) -> None:
    """Run each statement in a transaction of its own, and capture it alone."""
    for statement in filter(None, (each.strip() for each in statements.split(";"))):
        env.land(statement)


def wrong_at_last(env: PipelineEnv) -> list[str]:
    """Merge, and do what the DAGs do until nothing is left to do; return what is wrong then."""
    env.merge()
    for _ in range(5):
        env.land()
        env.merge()
        env.wake(woken=False)
    env.come_to_rest(3)
    return env.wrong()


def test_a_first_copy_whose_table_changes_before_its_first_cut(begun: PipelineEnv) -> None:
    alone(begun, COPIED)
    alone(begun, LATER)

    assert wrong_at_last(begun) == []


GOING = """
create table {t} (id int primary key, v text, n int unique not null); insert into {t} select i, 'v', i from generate_series(1, 30) i
"""


def test_a_table_that_goes_comes_back_or_changes_places_before_its_first_cut(env16: PipelineEnv) -> None:
    publication = env16.ctx.pipeline.publication
    env16.each(("gone", "away", "back", "again", "emptied", "keyed", "moved", "one", "two", "grown"), GOING)
    env16.begin("create schema s")
    alone(
        env16,
        f"drop table gone; alter publication {publication} drop table away, back; insert into back values (40, 'x', 40)",
    )
    alone(env16, "insert into back values (41, 'x', 41); delete from away where id = 1")
    alone(
        env16, "drop table again; create table again (id int primary key, w text); insert into again values (1, 'new')"
    )
    alone(env16, "truncate emptied; insert into emptied values (1, 'refilled', 1)")
    alone(env16, "alter table keyed drop constraint keyed_pkey, add primary key (n); update keyed set id = id + 1000")
    alone(
        env16,
        "alter table moved set schema s; alter table one rename to x; alter table two rename to one; alter table x rename to two",
    )
    alone(env16, "insert into one values (100, 'was two', 100); insert into two values (200, 'was one', 200)")
    alone(
        env16,
        "alter table grown rename to grows; create table grown (id int primary key); insert into grown values (7)",
    )

    assert wrong_at_last(env16) == []

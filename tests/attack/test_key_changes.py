"""What else happens around a change of a table's key: windows that lie apart, rebuilds, kills, and what makes rows hard to tell apart."""

import pytest

from penstock.errors import SourceError
from penstock.flow.load import run as rebuild
from penstock.flow.load.run import Replay
from penstock.flow.merge import publish as publishing
from penstock.flow.merge import run as merge
from penstock.flow.verify.compare import compare
from tests.pipeline_env import PipelineEnv

pytestmark = pytest.mark.spark

MADE = (
    "create table {t} (id int primary key, code text not null unique, note text); "
    "insert into {t} select i, 'c' || i, 'n' || i from generate_series(1, 9) i"
)
BY_CODE = "alter table {t} drop constraint {t}_pkey, add constraint {t}_pkey primary key (code)"
STEPS = (
    "update {t} set note = 'by id' where id in (1, 2); delete from {t} where id = 3",
    BY_CODE,
    "update {t} set note = 'by code' where code in ('c2', 'c4'); delete from {t} where code = 'c5'; "
    "update {t} set code = 'moved' where code = 'c6'",
    "alter table {t} drop constraint {t}_pkey, drop constraint {t}_code_key, replica identity full; "
    "insert into {t} select 7, 'c7', 'equal' from generate_series(1, 2)",
    "delete from {t} where note = 'equal'; update {t} set note = 'whole' where id = 8",
    "alter table {t} add constraint {t}_pkey primary key (id), replica identity default; "
    "update {t} set note = 'by id again' where id in (1, 8)",
)


@pytest.mark.slow
def test_a_replay_and_a_resync_find_rows_by_the_key_of_each_window(env16: PipelineEnv) -> None:
    names = ("replayed", "resynced")
    for name in names:
        env16.sql(MADE.format(t=name))
    env16.bootstrap()
    for step in STEPS:
        for name in names:
            env16.sql(step.format(t=name))
        env16.land()
    env16.merge()
    assert compare(env16.ctx).equal
    assert env16.missed() == {}

    ids = [
        *rebuild.replay(env16.ctx, Replay(("public.replayed",)), env16.submit),
        *rebuild.resync(env16.ctx, ["public.resynced"], env16.submit),
    ]
    for name in names:
        env16.sql(f"update {name} set note = 'later' where id in (2, 9)")
    env16.land()
    rebuild.switch(env16.ctx, ids, env16.submit)
    env16.merge()

    assert compare(env16.ctx).equal
    assert env16.missed() == {}


@pytest.mark.slow
def test_a_merge_of_two_keys_that_dies_after_spark_or_in_the_publish_is_made_again(
    env16: PipelineEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    env16.bootstrap(MADE.format(t="t"))
    before = sorted(env16.lake_rows("t"))
    env16.land("begin; " + "; ".join(STEPS[:3]).format(t="t") + "; commit")

    for owner, step in ((merge, "publish"), (publishing, "_published")):
        with monkeypatch.context() as patched:
            patched.setattr(owner, step, dies)
            with pytest.raises(KeyboardInterrupt):
                env16.merge()
        assert sorted(env16.lake_rows("t")) == before

    env16.merge()
    assert compare(env16.ctx).equal
    assert env16.missed() == {}


def dies(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def test_a_change_of_the_key_alone_is_an_event_and_writes_nothing(env16: PipelineEnv) -> None:
    env16.bootstrap(MADE.format(t="t"))
    files = env16.data_files("t")

    env16.follow(BY_CODE.format(t="t"))

    assert env16.data_files("t") == files
    assert env16.merge() is None, "nothing is left to do"
    [reported] = env16.ctx.ledger.events.unannounced(env16.name, "schema-followed")
    assert (reported.details["rule"], reported.message) == ("change-key", "the key is (code) now, it was (id)")

    env16.follow("update t set note = 'x' where code = 'c2'; delete from t where code = 'c3'")
    assert compare(env16.ctx).equal


@pytest.mark.slow
def test_values_that_were_fetched_are_found_by_the_key_of_that_time(env16: PipelineEnv) -> None:
    env16.bootstrap(MADE.format(t="t"))
    env16.land("alter table t add column u uuid default gen_random_uuid()")
    assert set(env16.paused()) == {"t"}
    assert rebuild.resync(env16.ctx, None, env16.submit, woken=True) == []
    assert env16.paused() == {}

    env16.follow(f"begin; update t set note = 'x' where id = 2; {'; '.join(STEPS[1:3])}; commit".format(t="t"))

    assert env16.paused() == {}
    assert compare(env16.ctx).equal
    assert env16.missed() == {}


@pytest.mark.slow
def test_the_key_of_a_partitioned_table_and_one_beside_a_rewrite_cost_a_copy(env16: PipelineEnv) -> None:
    env16.sql(
        "create table parted (id int, code int, primary key (id)) partition by range (id); "
        "create table parted_1 partition of parted for values from (0) to (100); insert into parted values (1, 1)"
    )
    env16.bootstrap(MADE.format(t="rewritten"))

    env16.sql("alter table parted drop constraint parted_pkey, add primary key (id, code)")
    env16.land(f"{BY_CODE.format(t='rewritten')}; alter table rewritten alter column id type bigint")

    found = env16.paused()
    assert set(found) == {"parted", "rewritten"}
    assert all("the replica identity changed" in reason for reason in found.values())
    env16.merge()
    ids = rebuild.resync(env16.ctx, ["public.parted", "public.rewritten"], env16.submit)
    env16.capture()
    rebuild.switch(env16.ctx, ids, env16.submit)
    assert compare(env16.ctx).equal


@pytest.mark.slow
def test_a_key_that_becomes_deferrable_and_back_is_followed_and_rebuilt(env16: PipelineEnv) -> None:
    """Whole rows tell which are meant as long as two of them may have one key; the server keeps them apart before and after."""
    names, shift = ("merged", "replayed", "resynced"), "update {t} set id = id + 1"
    drop, add = "alter table {t} drop constraint {t}_pkey", "add constraint {t}_pkey primary key (id)"
    for name in names:
        env16.sql(f"{MADE.format(t=name)}; alter table {name} replica identity full")
    env16.bootstrap()
    windows = [
        (f"update {{t}} set note = 'x' where id < 4; {drop}, {add} deferrable", shift, "delete from {t} where id = 4"),
        (
            shift,
            "begin; set constraints all deferred; insert into {t} values (5, 'second', null); "
            "delete from {t} where id = 5 and code <> 'second'; commit",
            "update {t} set id = 15 - id where id in (7, 8)",
        ),
        (shift, f"{drop}, {add}", "update {t} set note = 'y' where id > 6; update {t} set id = 100 where id = 7"),
    ]
    for statements in windows:
        for name in names:
            for statement in statements:
                env16.sql(statement.format(t=name))
        env16.land()
    env16.merge()
    assert env16.paused() == {}
    assert compare(env16.ctx).equal
    assert env16.missed() == {}
    reported = [each.message for each in env16.ctx.ledger.events.unannounced(env16.name, "schema-followed")]
    assert reported.count("the key is the whole row now, because the primary key is deferrable, it was (id)") == len(
        names
    )
    assert reported.count("the key is (id) now, it was the whole row") == len(names)

    ids = [
        *rebuild.replay(env16.ctx, Replay(("public.replayed",)), env16.submit),
        *rebuild.resync(env16.ctx, ["public.resynced"], env16.submit),
    ]
    for name in names:
        env16.sql(f"delete from {name} where id = 6")
    env16.land()
    rebuild.switch(env16.ctx, ids, env16.submit)
    env16.merge()
    assert compare(env16.ctx).equal
    assert env16.missed() == {}


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
        SourceError, match=r"public\.mixed to log the old rows.* but its key is deferrable, in a partition"
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
    assert env16.paused() == {}
    assert compare(env16.ctx).equal
    assert env16.missed() == {}

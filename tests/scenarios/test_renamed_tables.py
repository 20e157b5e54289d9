"""Tables that are renamed: the lake's table takes the new name in the next cut, with its rows, its changelog, and no new file."""

import pytest

from penstock.flow.load import run as rebuild
from penstock.flow.load.replay_request import Replay
from penstock.flow.recover.resume import resume_table
from penstock.flow.verify.compare import compare
from penstock.ledger.table_records import TableRecord
from tests.pipeline_env import PipelineEnv
from tests.scenarios.changelogs import flush, logged, now
from tests.scenarios.members import messages
from tests.scenarios.stories import quoted

LONG = "n" * 63
HOSTILE = ('quo"te', "do.t", "Case", "${env:HOME}", LONG)
NAMES = (
    *("one", "blue", "green", "r1", "r2", "r3", "moved", "away", "twice", "back", "parted", "stays"),
    *(f"h{n}" for n in range(5)),
)
CHANGED = {"one", "blue", "back", "parted"}
MADE = "create schema far; create table far.there (id int primary key);" + "".join(
    f"create table {name} (id int primary key, s text)"
    + (
        " partition by range (id); create table parted_1 partition of parted for values from (0) to (1000);"
        if name == "parted"
        else ";"
    )
    + f"insert into {name} select n, 'was {name} ' || n from generate_series(1, 5) n;"
    for name in NAMES
)
RENAMED = """
update one set s = 'before' where id = 1;
begin; update one set s = 'within' where id = 2; alter table one rename to uno; insert into uno values (6, 'within'); commit;
begin; alter table blue rename to x; alter table green rename to blue; alter table x rename to green; update green set s = 'was blue' where id = 1; commit;
begin; alter table r1 rename to x; alter table r2 rename to r1; alter table r3 rename to r2; alter table x rename to r3; commit;
alter table moved set schema far;
begin; alter table away rename to far_away; create table away (id int primary key, n int); insert into away values (1, 1); commit;
alter table twice rename to twice_1; alter table twice_1 rename to twice_2;
alter table back rename to x; insert into x values (9, 'as x'); alter table x rename to back;
alter table parted_1 rename to parted_one; alter table parted rename to in_parts; update in_parts set s = 'after' where id = 1;
delete from uno where id = 3;
"""


@pytest.mark.slow
def test_renamed_tables_keep_their_rows_under_new_names_in_one_cut(env: PipelineEnv) -> None:
    env.settings["tables"] = {"include": ["public.*", "far.*"]}
    env.settings["changelog"] = {
        "slack": 0,
        "tables": {"include": ["public.one", "public.uno", "public.blue", "public.green"]},
    }
    env.bootstrap(MADE)
    start = now(env)
    env.sql("update one set s = s || ' logged' where id = 5; update blue set s = s || ' logged' where id = 5")
    middle = now(env)
    flush(env)
    env.changelog(start, middle)
    env.merge()
    first = {record.oid: record.name for record in env.tables}
    files, copied = shown(env), env.copies()

    env.follow(RENAMED + "".join(f"alter table h{n} rename to {quoted(name)};" for n, name in enumerate(HOSTILE)))

    public, far = f"{env.name}.public", f"{env.name}.far"
    assert compare(env.ctx, current(env)).equal, compare(env.ctx, current(env))
    assert {first[record.oid]: ".".join(record.target) for record in current(env)} == {
        "one": f"{public}.uno",
        "blue": f"{public}.green",
        "green": f"{public}.blue",
        "r1": f"{public}.r3",
        "r2": f"{public}.r1",
        "r3": f"{public}.r2",
        "moved": f"{far}.moved",
        "away": f"{public}.far_away",
        "twice": f"{public}.twice_2",
        "back": f"{public}.back",
        "parted": f"{public}.in_parts",
        "stays": f"{public}.stays",
        "there": f"{far}.there",
        **{f"h{n}": f"{public}.{name.replace('.', '_')}" for n, name in enumerate(HOSTILE)},
    }
    assert {name for _, name in places(env)} >= {"uno", "uno__changelog", "green__changelog"}
    assert not {name for _, name in places(env)} & {"one", "one__changelog"}, "the old names are free"
    assert env.copies() == copied
    later = shown(env)
    assert {first[oid] for oid in files if later[oid] != files[oid]} == CHANGED, "a new name alone writes no file"
    assert states(env) == {"away": "new"} | dict.fromkeys((*NAMES_NOW, "far_away"), "ready")
    assert env.merge() is None, "nothing is left to do"

    # the newcomer is copied into the name that became free; a renamed table is resynced and replayed under its new one
    assert env.resync("public.away", "public.uno")
    assert rebuild.switch(env.ctx, rebuild.replay(env.ctx, Replay(["public.green"]), env.submit), env.submit)
    env.land("update far.moved set s = 'later'; update away set n = 2; insert into uno values (7, 'later')")
    flush(env)
    env.merge()
    end = now(env)
    flush(env)
    env.changelog(middle, end)
    assert len(logged(env, "uno", start, middle)) == len(logged(env, "green", start, middle)) == 1
    assert len(logged(env, "uno", middle, end)) == 5
    assert env.unlike() == []
    assert set(states(env).values()) == {"ready"}


NAMES_NOW = (
    *("uno", "green", "blue", "r1", "r2", "r3", "moved", "there", "twice_2", "back", "in_parts", "stays"),
    *HOSTILE,
)


def current(env: PipelineEnv) -> list[TableRecord]:
    return [record for record in env.tables if record.state == "ready"]


def states(env: PipelineEnv) -> dict[str, str]:
    return {record.name: record.state for record in env.tables}


def places(env: PipelineEnv) -> set[tuple[str, str]]:
    assert env.lake is not None
    rows = env.lake.database.execute(
        "select table_namespace, table_name from iceberg_tables where table_namespace like %s", f"{env.name}%"
    )
    return {(namespace, name) for namespace, name in rows}


def shown(env: PipelineEnv) -> dict[int, str]:
    """Return the metadata file that the lake's catalog shows of each table, by oid."""
    assert env.lake is not None
    rows = env.lake.database.execute(
        "select table_namespace || '.' || table_name, metadata_location from iceberg_tables"
    )
    files = dict(rows)
    return {record.oid: files[".".join(record.target)] for record in current(env)}


@pytest.mark.slow
def test_a_name_that_is_taken_pauses_a_renamed_table_and_a_name_that_is_kept_stays(env16: PipelineEnv) -> None:
    env16.each(
        ("a", "b", "c", "d", "e", "x_y"), "create table {t} (id int primary key); insert into {t} values (1), (2)"
    )
    env16.bootstrap()
    copied = env16.copies()

    # b is kept in the lake though the source dropped it; alien is someone else's; x_y is the lake's name of x.y too
    env16.spark.sql(f"create table lake.{env16.name}.public.alien (n int)")
    env16.follow("drop table b; alter table a rename to b; alter table e rename to alien; insert into b values (3)")
    assert (paused(env16, "b"), paused(env16, "alien")) == ("schema-change", "target-clash")
    env16.spark.sql(f"drop table lake.{env16.name}.public.b")
    env16.land('alter table alien rename to "x.y"')
    assert "public.x_y's" in messages(env16, "target-clash")[-1]
    env16.land('alter table "x.y" rename to e')
    for name in ("b", "e"):
        resume_table(env16.ctx, f"public.{name}")

    # what is to be dropped makes way
    env16.settings["tables"] = {"include": ["public.*"], "on_removed": "drop"}
    env16.follow("drop table c; alter table d rename to c; delete from c where id = 1; insert into e values (3)")
    assert targets(env16) == {name: name for name in ("b", "c", "e", "x_y")}
    assert compare(env16.ctx, current(env16)).equal
    assert env16.copies() == copied

    # kept names are those that readers know, also after a copy
    env16.settings["lake"] = {"on_renamed_table": "keep"}
    env16.follow("alter table e rename to f; insert into f values (4); create table e (id int primary key)")
    assert f"{env16.name}.public.e is the lake's name of public.f" in messages(env16, "target-clash")[-1]
    assert env16.resync("public.f")
    assert targets(env16) == {"b": "b", "c": "c", "f": "e", "x_y": "x_y"}
    assert compare(env16.ctx, current(env16)).equal


def paused(env: PipelineEnv, name: str) -> str | None:
    (found,) = (record for record in env.tables if record.name == name and record.state != "dropped")
    return found.paused_slug


def targets(env: PipelineEnv) -> dict[str, str]:
    return {record.name: record.target[-1] for record in current(env)}

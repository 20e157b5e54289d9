"""Merge and publish killed, overtaken and contradicted: a cut moves all tables once, or nothing; then source = lake.

One env serves all tests, with ledger and catalog in one database, as by default. Every test makes changes, lets
something go wrong, runs on, and compares; tables that a test spoils for good are its own.
"""

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import Any

import pytest

from penstock.errors import LakeError, LedgerError
from penstock.flow.guards import record_errors
from penstock.flow.merge import run as merge
from penstock.flow.merge.due import due
from penstock.flow.schema import run as schema
from penstock.flow.verify.compare import compare
from penstock.ledger import merges
from penstock.ledger.records import CutRecord
from penstock.source import server_info
from penstock_spark import merge as merging
from tests.faults.conftest import NewPipeline
from tests.faults.harness import cut, killed, killed_unseen, pointers
from tests.faults.steps import Step
from tests.pipeline_env import PipelineEnv

pytestmark = pytest.mark.spark

TABLES = """
create table item (id int primary key, name text);
create table visit (page text, n int);
alter table visit replica identity full;
create table taken (id int primary key, name text);
create table typed (id int primary key, amount int);
create table shrunk (id int primary key, a text, b text);
create table renamed (id int primary key, a text);
create table grown (id int primary key, name text);
create table hasty (id int primary key, name text);
create table red (id int primary key, name text);
create table black (id int primary key, name text);
insert into red values (1, 'red');
insert into black values (1, 'black');
insert into item select n, 'item ' || n from generate_series(1, 40) n;
insert into visit select 'page ' || n % 3, n % 2 from generate_series(1, 20) n;
insert into taken select n, 'taken ' || n from generate_series(1, 20) n;
insert into typed select n, n from generate_series(1, 5) n;
insert into shrunk select n, 'a', 'b' from generate_series(1, 5) n;
insert into renamed select n, 'a' from generate_series(1, 5) n;
insert into grown select n, 'grown ' || n from generate_series(1, 5) n;
insert into hasty select n, 'hasty ' || n from generate_series(1, 5) n;
"""
CHANGES = """
update item set name = name || '+' where id % 4 = 1;
delete from item where id = (select max(id) from item);
insert into item select coalesce(max(id), 0) + 100, 'new' from item;
update item set id = -id where id = (select min(id) from item where id > 0);
delete from visit where ctid = (select ctid from visit limit 1);
insert into visit values ('page 1', 1), ('page 1', 1);
"""
PLANNING = [(step, when) for step in (Step.MERGE_BEGUN, Step.TEXT_WRITTEN) for when in ("before", "after")]
BEFORE_THE_COMMIT = [
    (Step.MERGE_PUBLISHED, "before"),
    (Step.MERGE_TABLES_ADVANCED, "after"),
    (Step.CUT_RECORDED, "after"),
    (Step.POINTERS_MOVED_BY_MERGE, "after"),
]
RENAMING = [(Step.MERGE_TABLES_RENAMED, "after"), (Step.POINTERS_MOVED_BY_MERGE, "after")]


@pytest.fixture(scope="module")
def env(new_pipeline: NewPipeline) -> PipelineEnv:
    return new_pipeline("faults_merge", TABLES)


def spark_merge(env: PipelineEnv, attempt: str) -> None:
    env.submit(merge.job(env.ctx, attempt))


def cuts(env: PipelineEnv) -> list[CutRecord]:
    return env.ctx.ledger.merges.cuts(env.name, limit=1000)


def equal(env: PipelineEnv, *names: str) -> None:
    """Assert that source and lake are equal, table by table, and the tables not paused."""
    found = {compared.name: compared for compared in compare(env.ctx).tables}
    for name in names or ("item", "visit"):
        assert env.table(name).state == "ready", env.table(name).paused_reason
        assert found[name].equal, list(found[name].lines())


# --- plan and Spark ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_killed_plan_and_an_application_without_a_result_leave_nothing_behind(env: PipelineEnv) -> None:
    env.land(CHANGES)
    before = cut(env)
    killed_unseen(env, "plan", PLANNING, cut)

    silent = env.plan()
    with pytest.raises(LakeError, match="spark-failed"):
        merge.publish(env.ctx, silent)
    assert cut(env) == before

    env.merge()
    equal(env)


@pytest.mark.slow
def test_a_spark_run_that_outlived_its_task_changes_nothing(env: PipelineEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    env.land(CHANGES)
    during = env.plan()
    after = env.plan()
    env.land(CHANGES)
    overtaken = env.plan()

    # a stale run writes while its successor is between its tables and its end: it touches nothing of that one's
    with monkeypatch.context() as patched:
        between(patched, lambda: spark_merge(env, during))
        spark_merge(env, overtaken)
    published = cuts(env)
    with pytest.raises(LedgerError, match="ledger-conflict"):
        merge.publish(env.ctx, during)
    assert cuts(env) == published
    merge.publish(env.ctx, overtaken)
    equal(env)

    # another one begins to write only after its successor has published
    with pytest.raises(LakeError, match="foreign-commit"):
        spark_merge(env, after)
    with pytest.raises(LakeError, match="spark-failed"):
        merge.publish(env.ctx, after)
    with pytest.raises(LedgerError, match="ledger-conflict"):
        merge.publish(env.ctx, during)
    assert len(cuts(env)) == len(published) + 1
    equal(env)


def between(patched: pytest.MonkeyPatch, intrude: Callable[[], None]) -> None:
    """Let something happen in the next merge after its tables are staged and before its end."""
    record_cut = merging.record_cut

    def wrapped(*arguments: Any) -> Any:
        patched.setattr(merging, "record_cut", record_cut)
        intrude()
        return record_cut(*arguments)

    patched.setattr(merging, "record_cut", wrapped)


# --- publish ----------------------------------------------------------------------------------------


def test_a_publish_killed_before_its_commit_moves_nothing_and_two_at_once_move_it_once(
    env: PipelineEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    env.land(CHANGES)
    attempt = env.prepared()
    before, published = cut(env), cuts(env)

    killed_unseen(env, f"publish:{attempt}", BEFORE_THE_COMMIT, cut)
    with monkeypatch.context() as patched:
        patched.setattr(merges, "move_pointers", terminated_afterwards(env))
        with pytest.raises(LedgerError, match="ledger-unreachable"):
            merge.publish(env.ctx, attempt)
    assert cut(env) == before

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda _: merge.publish(env.ctx, attempt), range(2))
    assert first == second
    assert len(cuts(env)) == len(published) + 1
    equal(env)


def terminated_afterwards(env: PipelineEnv) -> Callable[..., None]:
    """Return a `move` after which the server ends the connection, before the commit."""
    move = merges.move_pointers

    def wrapped(transaction: Any, *arguments: Any, **named: Any) -> None:
        move(transaction, *arguments, **named)
        env.ledger.execute("select pg_terminate_backend(%s, 5000)", transaction.connection.info.backend_pid)

    return wrapped


def test_names_that_change_places_do_so_in_the_cut_or_not_at_all(env: PipelineEnv) -> None:
    oids = {name: env.table(name).oid for name in ("red", "black")}
    swap = "alter table red rename to x; alter table black rename to red; alter table x rename to black; "
    env.land(f"{swap} update black set name = name || '+'; {CHANGES}")
    attempt = env.prepared()
    before = pointers(env)
    killed_unseen(env, f"publish:{attempt}", RENAMING, cut)

    # renamed again after the plan: it has the name of the plan first, and the newer one in the next cut
    env.land("alter table black rename to brown")
    killed(env, f"publish:{attempt}", Step.MERGE_PUBLISHED, "after")
    assert {each["name"]: each["target"][-1] for each in cuts(env)[0].tables if each["oid"] in oids.values()} == {
        "brown": "black",
        "red": "red",
    }
    assert pointers(env)[f"{env.name}.public", "red"] == before[f"{env.name}.public", "black"]
    env.merge()
    assert (env.table("red").oid, env.table("brown").oid) == (oids["black"], oids["red"])
    equal(env, "item", "visit", "red", "brown")
    env.sql("alter table red rename to black; alter table brown rename to red")
    env.follow(CHANGES)
    equal(env, "item", "visit", "red", "black")


def test_a_publish_whose_answer_got_lost_returns_its_cut_when_asked_again(env: PipelineEnv) -> None:
    env.land(CHANGES)
    attempt = env.prepared()
    killed(env, f"publish:{attempt}", Step.MERGE_PUBLISHED, "after")
    after, newest = cut(env), cuts(env)[0]
    assert newest.attempt == attempt

    assert merge.publish(env.ctx, attempt) == newest
    assert cut(env) == after
    equal(env)


def test_a_foreign_commit_before_the_publish_pauses_that_table_and_no_other(env: PipelineEnv) -> None:
    env.land(f"{CHANGES} update taken set name = name || '+'")
    attempt = env.prepared()
    env.spark.sql(f"delete from lake.{env.name}.public.taken where id = 7")
    before = cut(env)

    with pytest.raises(LakeError, match=r"publish-conflict.*public\.taken"):
        merge.publish(env.ctx, attempt)
    assert cut(env) == before

    env.merge()
    assert (env.table("taken").state, env.table("taken").paused_slug) == ("paused", "foreign-commit")
    equal(env)


# --- landing files and shapes -----------------------------------------------------------------------


def test_a_missing_landing_file_is_named_and_halts_and_nothing_is_lost(env: PipelineEnv) -> None:
    env.land(CHANGES)
    files = [entry for window in env.ctx.ledger.windows.all(env.name)[-1:] for entry in window.files]
    missing = next(entry.path for entry in files if entry.oid == env.table("item").oid)
    place, aside = env.landing / missing, env.landing / "aside"
    before, published = pointers(env, aside=True), cuts(env)

    attempt = env.plan()
    place.rename(aside)
    with pytest.raises(LakeError, match="landing-file-missing") as in_spark:
        spark_merge(env, attempt)
    assert missing in in_spark.value.message
    with pytest.raises(LakeError, match="landing-file-missing") as in_plan, record_errors(env.ctx):
        merge.plan(env.ctx)
    assert missing in in_plan.value.message
    assert env.ctx.ledger.pipelines.get(env.name).halted_slug == "landing-file-missing"
    with pytest.raises(LedgerError, match="pipeline-halted"):
        merge.plan(env.ctx)
    assert cuts(env) == published
    assert pointers(env, aside=True).keys() == before.keys()

    aside.rename(place)
    env.ctx.ledger.pipelines.resume(env.name)
    env.merge()
    equal(env)


@pytest.mark.slow
def test_columns_that_are_added_dropped_and_renamed_follow_and_a_rewritten_one_pauses_that_table_only(
    env: PipelineEnv,
) -> None:
    env.land("update grown set name = 'landed before the column' where id = 1")
    env.follow(
        """
        alter table grown add colour text default 'grey';
        insert into grown values (100, 'new', 'red');
        update grown set colour = null where id = 2;
        insert into typed values (6, 6);
        alter table typed alter amount type text;
        insert into typed values (7, 'seven');
        alter table shrunk drop b;
        insert into shrunk values (6, 'without b');
        alter table renamed rename a to c;
        insert into renamed values (6, 'in c');
        """
        + CHANGES
    )

    paused = env.table("typed")
    assert (paused.state, paused.paused_slug) == ("paused", "schema-change")
    assert len(env.lake_rows("typed")) == 5, "a paused table stays at its cut"
    equal(env, "item", "visit", "grown", "shrunk", "renamed")
    colours = dict(env.lake_rows("grown", "id, colour"))
    assert (colours[1], colours[2], colours[3], colours[100]) == ("grey", None, "grey", "red")


def test_a_cut_that_is_published_while_another_is_planned_overtakes_the_plan(
    env: PipelineEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempt = env.prepared(force=True)

    def slowly(*arguments: Any, **named: Any) -> object:
        queue = due(*arguments, **named)
        merge.publish(env.ctx, attempt)
        return queue

    with monkeypatch.context() as patched:
        patched.setattr(merge, "due", slowly)
        with pytest.raises(LedgerError, match="ledger-conflict"):
            merge.plan(env.ctx, force=True)
    env.merge(force=True)
    equal(env, "item")


@pytest.mark.slow
def test_a_column_that_is_added_while_a_window_begins_does_not_pause_its_table(
    env: PipelineEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[tuple[ModuleType, str, int]] = [
        (schema, "follow", 1),
        (server_info, "position", 1),
        (server_info, "position", 2),
    ]
    for number, (owner, step, occurrence) in enumerate(steps):
        added = f"alter table hasty add column_{number} int default {number}; insert into hasty values ({100 + number})"
        with monkeypatch.context() as patched:
            patched.setattr(owner, step, followed_by(getattr(owner, step), occurrence, env, added))
            env.capture()
        assert merge.plan(env.ctx, force=True)
        assert env.table("hasty").state == "ready", env.table("hasty").paused_reason
        env.capture()
    env.merge()
    equal(env, "hasty")


def followed_by(step: Callable[..., Any], occurrence: int, env: PipelineEnv, statement: str) -> Callable[..., Any]:
    """Return a step of capture right after whose nth call the source changes its shape."""
    calls = itertools.count(1)

    def wrapped(*arguments: Any) -> Any:
        result = step(*arguments)
        if next(calls) == occurrence:
            env.sql(f"set synchronous_commit = on; {statement}")
        return result

    return wrapped


# --- ledger and catalog in two databases ------------------------------------------------------------


def test_a_publish_killed_between_catalog_and_ledger_is_healed(new_pipeline: NewPipeline) -> None:
    env = new_pipeline(
        "faults_apart",
        "create table item (id int primary key, name text); insert into item values (1, 'copied');"
        "create table visit (page text); alter table visit replica identity full;"
        "create table left_0 (id int primary key); insert into left_0 values (1)",
        apart=True,
    )
    for number, repeated in enumerate((True, False)):
        renamed = f"alter table left_{number} rename to left_{number + 1}"
        env.land(f"update item set name = name || '+'; insert into visit values ('page'); {renamed}")
        attempt = env.prepared()
        published = cuts(env)
        killed_unseen(env, f"publish:{attempt}", [(Step.POINTERS_MOVED_BY_MERGE, "before")], cut)
        killed(env, f"publish:{attempt}", Step.POINTERS_MOVED_BY_MERGE, "after")
        assert (f"{env.name}.public", f"left_{number + 1}") in pointers(env)
        assert cuts(env) == published
        if repeated:
            assert merge.publish(env.ctx, attempt).attempt == attempt
        else:  # no one asks again: the next merge finds out
            env.follow("update item set name = name || '-'; insert into visit values ('page')")
        equal(env, "item", "visit", f"left_{number + 1}")

"""A copy is what its snapshot saw, or it is made again: TRUNCATE, rewrites and other DDL between the snapshot and the read.

Such commands are not MVCC-safe: an older snapshot sees the new file empty, and nothing says so. Each case comes when the
catalog is read and the plan is written, before the first row is.
"""

import itertools
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from penstock.errors import LakeError, SourceError
from penstock.flow.load import bootstrap
from penstock.flow.load import run as rebuild
from penstock.flow.recover import resume
from penstock.flow.spark_job import SparkJob
from tests.faults.oracle import at_source, landed, multiset_at_source
from tests.pipeline_env import PipelineEnv, copy_without_spark
from tests.scenarios.members import messages, states

TABLES = """
create table t (id int primary key, v text);
insert into t select n, 'row ' || n from generate_series(1, 100) n;
create table other (id int primary key);
insert into other select generate_series(1, 100);
create table m (id int, v text, primary key (id)) partition by range (id);
create table m1 partition of m for values from (0) to (50);
create table m2 partition of m for values from (50) to (200);
insert into m select n, 'row ' || n from generate_series(1, 100) n;
"""

DDL = {
    "truncate and refill": "truncate t; insert into t values (1, 'refilled'), (2, 'refilled')",
    "truncate": "truncate t",
    "rewrite by a default": "alter table t add c int default random() * 100; alter table t drop c",
    "rewrite by a type": "alter table t alter v type varchar(20) using upper(v)",
    "rewrite without a change": "vacuum full t",
    "leaf unlogged and logged": "alter table m1 set unlogged; update m set v = 'unlogged'; alter table m1 set logged",
    "renamed": "alter table t rename to t_renamed",
    "another of its name": "alter table t rename to t_old; create table t (id int primary key, v text)",
    "into another schema": "create schema elsewhere; alter table t set schema elsewhere",
    "schema renamed": "alter schema s rename to s_renamed",
    "column dropped": "alter table t drop v",
    "column renamed": "alter table t rename v to w",
    "leaf truncated and refilled": "truncate m1; insert into m values (7, 'refilled')",
    "leaf dropped": "drop table m1",
    "leaf detached and dropped": "alter table m detach partition m2; drop table m2",
    "leaf made again": "drop table m1; create table m1 partition of m for values from (0) to (50); insert into m values (3, 'again')",
    "leaf renamed": "alter table m1 rename to m0",
}
FAST = ("truncate and refill", "another of its name", "column dropped", "leaf truncated and refilled", "leaf dropped")


def once(env: PipelineEnv, statement: str, times: int = 1) -> Callable[[SparkJob], None]:
    """Return a Spark that meets this statement when its first copy begins, or so many of them do."""
    left = [statement] * times

    def submit(job: SparkJob) -> None:
        copies = job.application.stem == "copy_tables"
        if left and copies:
            env.sql(left.pop())
        (copy_without_spark if copies else env.submit)(job)

    return submit


def copied(env: PipelineEnv) -> dict[str, Counter[tuple[str | None, ...]]]:
    """Return what the finished copies hold, by table, as texts."""
    ledger, found = env.ctx.ledger, {}
    names = {table.oid: table for table in ledger.tables.all(env.name)}
    for each in ledger.loads.copies(env.name, state="ready"):
        columns = [column.name for column in names[each.oid].columns]
        rows = [row for file in each.files for row in env.ctx.landing.read(file.path).to_pylist()]
        texts = (tuple(None if row[name] is None else str(row[name]) for name in columns) for row in rows)
        found[names[each.oid].qualified] = Counter(texts)
    return found


def source(env: PipelineEnv) -> dict[str, Counter[tuple[str | None, ...]]]:
    """Return what the source's tables hold that are published, by table, as texts."""
    name = env.ctx.pipeline.publication
    tables = env.sql(f"select schemaname, tablename from pg_publication_tables where pubname = '{name}'")
    return {f"{schema}.{table}": multiset_at_source(env, f'{schema}"."{table}') for schema, table in tables}


def paused(env: PipelineEnv) -> dict[str, str | None]:
    return {each.name: each.paused_slug for each in env.tables if each.state == "paused"}


def equal(env: PipelineEnv) -> None:
    """Capture, merge, and see that every published table is in the lake as it is at the source."""
    env.follow()
    assert env.unlike() == []


@pytest.mark.parametrize(
    "name", [*FAST, *(pytest.param(each, marks=pytest.mark.slow) for each in DDL if each not in FAST)]
)
def test_a_first_copy_is_what_the_source_has_whatever_was_done_to_the_table_before_it_was_read(
    env16: PipelineEnv, name: str
) -> None:
    env16.settings["tables"] = {"include": ["public.*", "s.*"]}
    env16.prepare(TABLES + "create schema s; create table s.apart (id int primary key); insert into s.apart values (1)")

    bootstrap.copy(env16.ctx, once(env16, DDL[name]))

    assert copied(env16) == source(env16)
    assert env16.ctx.ledger.pipelines.get(env16.name).state == "running"


def landing(monkeypatch: pytest.MonkeyPatch, env: PipelineEnv, number: int, statement: str) -> None:
    """Run a statement on the source when so many ranges have been read."""
    from penstock_spark import copy as copying  # noqa: PLC0415  # tests without Spark do not pay for it

    land, ranges = copying.land, itertools.count(1)

    def landed_then(*arguments: Any, **named: Any) -> dict[str, Any]:
        entry = land(*arguments, **named)
        if next(ranges) == number:
            env.sql(statement)
        return entry

    monkeypatch.setattr(copying, "land", landed_then)


def test_a_table_that_is_truncated_between_two_of_its_ranges_is_copied_again(
    env16: PipelineEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    env16.settings["copy"] = {"range_bytes": "8KiB"}
    env16.prepare(
        "create table t (id int primary key, v text); insert into t select n, repeat('v', 200) from generate_series(1, 200) n"
    )
    landing(monkeypatch, env16, 2, "truncate t; insert into t values (1, 'refilled')")

    bootstrap.copy(env16.ctx, copy_without_spark)

    assert copied(env16) == source(env16)


def test_a_table_that_is_truncated_when_it_was_read_is_not_copied_again(
    env16: PipelineEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    env16.prepare("create table a (id int primary key); insert into a values (1); create table b (id int primary key)")
    landing(monkeypatch, env16, 1, "truncate a; insert into a values (2)")

    bootstrap.copy(env16.ctx, copy_without_spark)
    env16.capture()

    assert len({each.copy_id for each in env16.ctx.ledger.loads.copies(env16.name)}) == 1
    assert landed(env16, "a", "id") == at_source(env16, "a", "id"), "the stream has the TRUNCATE"


def test_what_changed_between_the_snapshot_and_the_first_look_is_noticed_by_the_first_capture(
    env16: PipelineEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    env16.prepare(TABLES)
    record = bootstrap._record

    def altered(*arguments: Any) -> None:
        env16.sql("alter table other add c int default 7; alter table t alter v type varchar(20) using upper(v)")
        record(*arguments)

    monkeypatch.setattr(bootstrap, "_record", altered)
    bootstrap.copy(env16.ctx, copy_without_spark)
    known = {table.name: [column.name for column in table.columns] for table in env16.tables}
    assert known["other"] == ["id"], "the table as the snapshot sees it"
    assert copied(env16)["public.t"] == source(env16)["public.t"], "the rows of the new file, under a later snapshot"

    env16.capture()

    known = {table.name: [column.name for column in table.columns] for table in env16.tables}
    assert known["other"] == ["id", "c"]
    assert paused(env16) == {}


def test_a_table_that_is_dropped_or_leaves_while_it_is_copied_keeps_no_other_waiting(env16: PipelineEnv) -> None:
    env16.prepare(TABLES)
    leave = f"alter publication {env16.ctx.pipeline.publication} drop table other"

    bootstrap.copy(env16.ctx, once(env16, f"drop table t; {leave}"))

    assert env16.ctx.ledger.pipelines.get(env16.name).state == "running"
    assert copied(env16)["public.m"] == source(env16)["public.m"]
    env16.capture()
    assert states(env16)["t"] == "dropped"


def test_a_partition_that_comes_while_its_table_is_copied_is_in_the_stream_or_noticed(env16: PipelineEnv) -> None:
    env16.prepare(TABLES)

    bootstrap.copy(
        env16.ctx,
        once(
            env16,
            "create table m3 partition of m for values from (200) to (300); insert into m values (250, 'new')",
        ),
    )
    env16.capture()

    assert paused(env16) == {}
    assert landed(env16, "m", "id") == at_source(env16, "m", "id")


def test_a_partition_that_is_attached_with_its_rows_while_its_table_is_copied_is_noticed(env16: PipelineEnv) -> None:
    env16.sql(TABLES + "create table m3 (like m including all); insert into m3 values (250, 'before')")
    env16.settings["tables"] = {"include": ["public.*"], "exclude": ["public.m3"]}
    bootstrap.prepare(env16.ctx)

    bootstrap.copy(
        env16.ctx,
        once(
            env16,
            "insert into m3 values (251, 'unseen'); alter table m attach partition m3 for values from (200) to (300)",
        ),
    )
    env16.capture()

    assert paused(env16) == {"m": "schema-change"}


@pytest.mark.slow
@pytest.mark.spark
def test_a_table_that_never_stands_still_is_paused_with_the_reason_and_the_others_are_shown(env16: PipelineEnv) -> None:
    env16.prepare(TABLES)

    bootstrap.copy(env16.ctx, once(env16, "truncate t; insert into t values (1, 'again')", times=99))
    env16.merge()

    assert states(env16) == {"t": "paused", "other": "ready", "m": "ready"}
    assert paused(env16) == {"t": "copy-failed"}
    (said,) = messages(env16, "copy-failed")
    assert "[table-rewritten]" in said
    with pytest.raises(LakeError, match=r"\[copy-failed\].*no whole copy.*resync"):
        resume.resume_table(env16.ctx, "public.t")

    # tables that join: one that never stands still, one that is dropped, and two that nothing keeps
    env16.sql("create table fine (id int primary key); insert into fine values (1)")
    env16.sql("create table never (id int primary key); insert into never values (1)")
    env16.sql("create table bare (id int primary key, v text) partition by range (id)")
    env16.land("create table gone (id int primary key)")
    env16.sql("drop table gone")

    with pytest.raises(SourceError, match=r"\[table-rewritten\].*public\.never.*run again"):
        rebuild.resync(env16.ctx, None, once(env16, "truncate never; insert into never values (2)", times=99))

    env16.follow()
    assert states(env16) | {"never": "waiting"} == states(env16)
    assert {states(env16)[each] for each in ("fine", "bare", "t")} == {"ready"}

    # run again when that is over
    assert env16.resync()
    env16.sql("create table bare_1 partition of bare for values from (0) to (10); insert into bare values (1, 'x')")
    equal(env16)
    assert paused(env16) == {}


@pytest.mark.slow
@pytest.mark.spark
def test_the_first_cut_shows_no_table_as_an_older_snapshot_sees_it_after_truncate(env16: PipelineEnv) -> None:
    env16.prepare(TABLES)
    left = ["truncate t, m; insert into t values (1, 'refilled'); insert into m values (1, 'refilled'), (60, 'too')"]

    def submit(job: SparkJob) -> None:
        if left:
            env16.sql(left.pop() + "; alter table other add c int default 7; insert into other values (1000, 8)")
        env16.submit(job)

    bootstrap.copy(env16.ctx, submit)
    env16.merge()
    first = {name for name, state in states(env16).items() if state == "ready"}
    for name in first & {"t", "m"}:
        assert env16.lake_rows(name, "v") != [], "a cut shows the table empty"

    equal(env16)
    assert set(states(env16).values()) == {"ready"}

"""Verify: source and lake compared at one exact position, while the source is written to."""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any

import pytest

from penstock.compare.report import Comparison, TableComparison
from penstock.errors import ConfigError, LakeError, LedgerError, PenstockError, Trouble
from penstock.flow.load import run as rebuild
from penstock.flow.spark_job import SparkJob
from penstock.flow.verify.barrier import ANOTHER_RUN
from penstock.flow.verify.run import require_equal, verify
from tests.pipeline_env import PipelineEnv
from tests.waiting import at_work

pytestmark = pytest.mark.spark

SHOP = """
create table account (id int primary key, balance bigint not null, note text);
create table entry (account int, amount bigint, at timestamptz default clock_timestamp());
alter table entry replica identity full;
insert into account select n, 0, 'account ' || n from generate_series(1, 200) n;
"""

STEP = """
begin;
update account set balance = balance + {0} where id = {0} % 200 + 1;
insert into entry (account, amount) values ({0} % 200 + 1, {0});
delete from account where id = 200 + {0} - 20;
insert into account values (200 + {0}, {0}, repeat('x', {0} % 50));
commit
"""

DAMAGED = ("lost", "extra", "value", "void", "misfit", "intact")


@contextmanager
def written_to(env: PipelineEnv) -> Iterator[None]:
    """Let two writers change the source until the block ends; when it begins, both have."""
    begun = threading.Barrier(3, timeout=60)

    def write(number: int, stopped: Callable[[float], bool]) -> None:
        with env.source.connect() as connection:
            connection.autocommit = True
            connection.execute(STEP.format(number))
            begun.wait()
            while not stopped(0.05):
                number += 2
                connection.execute(STEP.format(number))

    with at_work(partial(write, 1), partial(write, 2)):
        begun.wait()
        yield


def scheduled(env: PipelineEnv) -> AbstractContextManager[None]:
    """Capture and merge again and again, as two DAGs would, until the block ends."""

    def repeat(work: Callable[[], object], stopped: Callable[[float], bool]) -> None:
        while not stopped(0.2):
            try:
                work()
            except PenstockError as error:  # the verification may be capturing just now
                if error.slug not in ANOTHER_RUN:
                    raise

    return at_work(partial(repeat, env.capture), partial(repeat, env.merge))


def verified(env: PipelineEnv, **options: Any) -> Comparison:
    def merge() -> None:
        env.merge()

    return verify(env.ctx, merge=merge, **options)


def by_table(found: Comparison) -> dict[str, TableComparison]:
    return {table.name: table for table in found.tables}


def left_at_source(env: PipelineEnv) -> list[tuple[Any, ...]]:
    """Return what a verification must not leave at the source: slots, and transactions that are open."""
    return env.sql(
        "select slot_name from pg_replication_slots where temporary union all "
        f"select application_name from pg_stat_activity where application_name like 'penstock:{env.name}:verify%'"
    )


def test_tables_are_equal_at_one_exact_position_while_writers_captures_and_merges_continue(env: PipelineEnv) -> None:
    env.bootstrap(SHOP)

    with written_to(env), scheduled(env):
        first = verify(env.ctx, merge=lambda: "the scheduled merge is awaited")
        second = verify(env.ctx, merge=lambda: "the scheduled merge is awaited")

    for found in (first, second):
        assert [table.outcome for table in found.tables] == ["equal", "equal"], env.lines
        (cut,) = [cut for cut in env.ctx.ledger.merges.cuts(env.name, limit=1000) if cut.lsn == found.lsn]
        assert {table["complete_through"] for table in cut.tables} == {str(found.lsn)}
    assert second.rows > first.rows > 200
    assert {table.verified_through for table in env.ctx.ledger.verifications.tables(env.name)} == {second.lsn}
    assert env.ctx.ledger.barriers.all(env.name) == {}
    assert left_at_source(env) == []


@pytest.mark.slow
def test_every_kind_of_damage_in_the_lake_is_found_and_the_alarm_closes_once_it_is_fixed(env16: PipelineEnv) -> None:
    env16.bootstrap(
        ";".join(
            f"create table {name} (id int primary key, note text, born date);"
            f"insert into {name} select n, 'note ' || n, date '2020-01-01' + n from generate_series(1, 30) n;"
            f"insert into {name} values (31, 'far', 'infinity')"
            for name in DAMAGED
        )
    )
    assert require_equal(verified(env16).differing, "0/0") is None
    spark, place = env16.spark, f"lake.{env16.name}.public"
    assert spark is not None
    spark.sql(f"delete from {place}.lost where id = 7")
    spark.sql(f"insert into {place}.extra select 99, note, born, _misfits from {place}.extra where id = 1")
    spark.sql(f"update {place}.value set note = 'other' where id = 7")
    spark.sql(f"update {place}.void set born = null where id = 7")
    spark.sql(f"update {place}.misfit set _misfits = map('born', '-infinity') where id = 31")
    env16.believe(*DAMAGED)

    env16.sql("update intact set note = 'changed' where id = 1")
    found = verified(env16)

    counts = {name: (each.missing, each.extra, each.different) for name, each in by_table(found).items()}
    assert counts == {
        "lost": (1, 0, 0),
        "extra": (0, 1, 0),
        "value": (0, 0, 1),
        "void": (0, 0, 1),
        "misfit": (0, 0, 1),
        "intact": (0, 0, 0),
    }
    assert found.differing == [f"public.{name}" for name in ("extra", "lost", "misfit", "value", "void")]
    assert by_table(found)["void"].first[0].columns == ("born",)
    ledger = env16.ctx.ledger
    alarms = {alarm.subject: alarm for alarm in ledger.health.alarms(env16.name)}
    assert sorted(alarms) == found.differing
    assert {alarm.slug for alarm in alarms.values()} == {"verify-differs"}
    assert not any("note 7" in line or "other" in line or "infinity" in line for line in env16.lines)
    with pytest.raises(LakeError, match=r"\[verify-differs\].*public\.lost"):
        require_equal(found.differing, found.lsn)
    assert {table.state for table in ledger.tables.all(env16.name)} == {"ready"}, "a difference pauses nothing"

    spark.sql(f"update {place}.void set born = date '2020-01-08' where id = 7")
    env16.believe("void")
    again = verified(env16, tables=["public.void", "public.intact"])
    assert again.differing == []
    assert "public.void" not in {alarm.subject for alarm in ledger.health.alarms(env16.name)}
    assert len(ledger.health.alarms(env16.name)) == 4


KEYS = {
    "by_int": ("int", "n"),
    "by_bytes": ('text collate "C"', "md5(n::text)"),
    "by_uuid": ("uuid", "md5(n::text)::uuid"),
    "by_day": ("date", "date '2020-01-01' + n"),
    "by_time": ("timestamptz", "timestamptz '2020-01-01 00:00+00' + n * interval '1.5 hours'"),
    "by_price": ("numeric(10,2)", "(n - 200) / 4.0"),
    "by_address": ("inet", "'10.0.0.0'::inet + n * 37"),  # not ordered alike: by text
    "by_word": ("char(12)", "'Wort ' || n"),
}


@pytest.mark.slow
def test_so_many_runs_of_a_sample_as_there_are_shares_see_every_row_once(env16: PipelineEnv) -> None:
    env16.settings["verify"] = {"share": "1/4", "whole_below": 1}
    for name, (type, value) in KEYS.items():
        env16.sql(f"create table {name} (id {type} primary key, other int)")
        env16.sql(f"insert into {name} select {value}, n from generate_series(1, 400) n")
    env16.sql("insert into by_day values ('infinity', 0), ('-infinity', 0), ('0044-03-15 BC', 0), ('10000-01-01', 0)")
    env16.sql("insert into by_time values ('infinity', 0), ('-infinity', 0)")
    env16.bootstrap("insert into by_price values ('NaN', 0)")
    spark, place = env16.spark, f"lake.{env16.name}.public"
    assert spark is not None
    for name in KEYS:
        spark.sql(f"update {place}.{name} set other = -1 where other = 399")
        spark.sql(f"delete from {place}.{name} where other = 3")
        spark.sql(f"insert into {place}.{name} (id, other) select null, 1234567 from {place}.{name} limit 1")
    env16.believe(*KEYS)

    runs = [verified(env16, mode="sample") for _ in range(4)]

    for name in KEYS:
        due = [next(each for each in run.tables if each.name == name) for run in runs]
        assert [(each.share, each.shares) for each in due] == [(1, 4), (2, 4), (3, 4), (4, 4)], name
        ((rows,),) = env16.sql(f"select count(*) from {name}")
        assert sum(each.source_rows for each in due) == rows, name
        assert max(each.source_rows for each in due) < rows / 3, name
        damage = sum((each.missing, each.extra, each.different) != (0, 0, 0) for each in due)
        assert damage in (2, 3), name
        assert sum(each.missing for each in due) == 1, name
        assert sum(each.extra for each in due) == 1, name
        assert sum(each.different for each in due) == 1, name
    assert {
        share.indexed for oid in env16.ctx.ledger.verifications.key_shares(env16.name).values() for share in oid
    } == {
        True,
        False,
    }
    assert {table.verified_through for table in env16.ctx.ledger.verifications.tables(env16.name)} == {None}


@pytest.mark.slow
def test_a_share_that_differed_is_looked_at_again_in_every_run_until_it_is_fixed(env16: PipelineEnv) -> None:
    env16.settings["verify"] = {"share": "1/3", "whole_below": 1}
    env16.bootstrap(
        "create table t (id int primary key, other int); insert into t select n, n from generate_series(1, 90) n"
    )
    spark, place = env16.spark, f"lake.{env16.name}.public.t"
    assert spark is not None
    spark.sql(f"update {place} set other = -1 where id = 5")
    env16.believe("t")

    def shares(found: Comparison) -> list[tuple[int, str]]:
        return [(each.share, each.outcome) for each in found.tables]

    assert shares(verified(env16, mode="sample")) == [(1, "differs")]
    assert shares(verified(env16, mode="sample")) == [(2, "equal"), (1, "differs")]
    assert [alarm.slug for alarm in env16.ctx.ledger.health.alarms(env16.name)] == ["verify-differs"]
    spark.sql(f"update {place} set other = 5 where id = 5")
    env16.believe("t")
    last = verified(env16, mode="sample")
    assert shares(last) == [(3, "equal"), (1, "equal")]
    assert env16.ctx.ledger.health.alarms(env16.name) == []
    (table,) = env16.ctx.ledger.verifications.tables(env16.name)
    assert table.verified_through is not None
    assert table.verified_through < last.lsn, "share 2 was looked at before"
    assert shares(verified(env16, mode="sample")) == [(1, "equal")], "a new round"


def test_what_cannot_be_compared_is_refused_before_any_work_or_skipped_with_the_reason(env16: PipelineEnv) -> None:
    env16.settings["verify"] = {"share": "1/2", "whole_below": 1}
    env16.bootstrap(SHOP + "create table late (id int primary key); insert into entry values (1, 1)")
    with env16.source.connect(autocommit=False) as writer:
        writer.execute(
            "insert into late values (99)"
        )  # until it ends no slot can be made: each would be refused for that

        with pytest.raises(ConfigError, match=r"\[table-unknown\].*got public\.acount; did you mean public\.account\?"):
            verified(env16, tables=["public.acount"])
        with pytest.raises(ConfigError, match=r"expected public\.entry to have a key.*mode whole"):
            verified(env16, tables=["public.entry"], mode="sample")
        with (
            env16.ctx.ledger.locks.hold(env16.name, "verify"),
            pytest.raises(LedgerError, match=r"\[work-under-way\].*verify"),
        ):
            verified(env16)
        writer.rollback()

    env16.ctx.ledger.tables.stop(env16.name, {env16.table("late").oid: Trouble.usual("schema-change", "for the test")})
    found = by_table(verified(env16, mode="sample"))
    assert (found["entry"].outcome, found["entry"].reason) == (
        "skipped",
        "it has no key by which its rows could be cut into shares",
    )
    assert (found["late"].outcome, found["late"].reason) == ("skipped", "it is paused by schema-change")
    assert found["account"].outcome == "equal"


@pytest.mark.slow
def test_a_table_that_is_truncated_while_it_is_compared_is_skipped_and_not_called_wrong(
    env16: PipelineEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    env16.bootstrap(SHOP + "insert into entry values (1, 1)")
    from penstock.flow.verify import compare as module  # noqa: PLC0415

    read = module.fingerprint

    def truncating(*arguments: Any) -> Any:
        env16.sql("truncate entry")
        return read(*arguments)

    monkeypatch.setattr(module, "fingerprint", truncating)

    found = by_table(verified(env16))

    assert found["account"].outcome == "equal"
    assert found["entry"].outcome == "skipped"
    assert "truncated, rewritten, renamed or dropped" in (found["entry"].reason or "")
    assert by_table(verified(env16, tables=["public.account"]))["account"].outcome == "equal"


@pytest.mark.slow
def test_a_table_that_is_copied_or_rebuilt_meanwhile_is_compared_or_skipped_and_not_called_wrong(
    env16: PipelineEnv,
) -> None:
    env16.bootstrap(SHOP + "insert into entry values (1, 1)")
    meanwhile = []

    def submit(job: SparkJob) -> None:
        meanwhile.append(by_table(verified(env16)))
        env16.sql("update account set balance = balance + 1")
        env16.submit(job)

    ids = rebuild.resync(env16.ctx, ["public.account"], submit)

    assert [{name: each.outcome for name, each in found.items()} for found in meanwhile] == [
        {"account": "equal", "entry": "equal"}
    ] * len(meanwhile)
    assert meanwhile
    assert env16.ctx.ledger.loads.builds(env16.name, states=["ready"]), (
        "it takes its name in the cut of the verification"
    )
    assert by_table(verified(env16))["account"].outcome == "equal"
    assert {each.id for each in env16.ctx.ledger.loads.builds(env16.name, states=["done"])} == set(ids)

    def merge() -> None:
        env16.merge()
        again = rebuild.resync(env16.ctx, ["public.account"], env16.submit)
        assert rebuild.switch(env16.ctx, again, env16.submit)

    found = by_table(verify(env16.ctx, merge=merge))
    assert (found["account"].outcome, found["account"].reason) == ("skipped", "it was replaced while it was verified")
    assert found["entry"].outcome == "equal"
    assert env16.ctx.ledger.health.alarms(env16.name) == []
    assert by_table(verified(env16))["account"].outcome == "equal"


def test_a_table_whose_column_is_renamed_meanwhile_is_skipped_and_not_called_wrong(env16: PipelineEnv) -> None:
    env16.bootstrap(SHOP)
    renames = iter(["alter table account rename note to remark"])

    def merge() -> str:
        for rename in renames:
            env16.sql(rename)
        env16.follow()
        return "merged"

    found = by_table(verify(env16.ctx, merge=merge))

    assert (found["account"].outcome, found["account"].reason) == (
        "skipped",
        "its columns changed while it was verified",
    )
    assert found["entry"].outcome == "equal"
    assert env16.ctx.ledger.health.alarms(env16.name) == []
    assert by_table(verified(env16))["account"].outcome == "equal"


def test_a_lake_that_does_not_come_to_the_position_in_time_is_an_error_and_nothing_is_left(env16: PipelineEnv) -> None:
    env16.settings["verify"] = {"wait": "1s"}
    env16.bootstrap(SHOP)

    with pytest.raises(LakeError, match=r"\[verify-late\].*within 1 s.*(nobody merges here|take too long)"):
        verify(env16.ctx, merge=lambda: "nobody merges here")

    assert env16.ctx.ledger.barriers.all(env16.name) == {}
    assert left_at_source(env16) == []

"""A table that cannot be read is one finding of a verification; every other table is compared, and the run says both."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.compare.fingerprint import Fingerprint
from penstock.compare.lake_reader import lake_reader
from penstock.compare.report import ComparedTable, Comparison, TableComparison
from penstock.errors import LakeError
from penstock.flow.context import Context
from penstock.flow.verify import compare
from penstock.flow.verify.run import require_equal, verify
from penstock.lsn import Lsn
from tests.pipeline_env import PipelineEnv

DAMAGED = ("data", "manifest", "manifest_list", "metadata", "garbled", "row")
LOCKED_OUT = "closed"


def files(env: PipelineEnv, table: str) -> dict[str, Path]:
    """Return one file of each kind that a lake table is made of."""
    with lake_reader(env.ctx.pipeline.lake.catalog, env.ctx.catalog) as lake:
        found = lake.table((env.ctx.pipeline.namespace, "public", table))
        assert found is not None
        snapshot = found.table.current_snapshot()
        assert snapshot is not None
        (manifest, *_) = snapshot.manifests(found.table.io)
        (task, *_) = found.table.scan().plan_files()
        uris = {
            "data": task.file.file_path,
            "manifest": manifest.manifest_path,
            "manifest_list": snapshot.manifest_list,
            "metadata": found.table.metadata_location,
        }
    return {kind: Path(str(uri).removeprefix("file://").removeprefix("file:")) for kind, uri in uris.items()}


def damage(env: PipelineEnv) -> None:
    """Take one kind of thing away from each of these tables."""
    for kind in DAMAGED[:4]:
        files(env, kind)[kind].unlink()
    files(env, "garbled")["manifest"].write_bytes(b"no manifest at all")
    assert env.lake is not None
    env.lake.database.execute(
        f"delete from iceberg_tables where table_namespace like '{env.name}%' and table_name = 'row'"
    )


def as_reader(env: PipelineEnv) -> Context:
    """Return the pipeline's context with a login that owns nothing and may read all tables but one."""
    env.sql(
        f"create role reader_{env.name} login replication password '{env.source.server.password}';"
        f"grant select on all tables in schema public to reader_{env.name};"
        f"revoke all on {LOCKED_OUT} from reader_{env.name}"
    )
    return env.logged_in(user=f"reader_{env.name}")


def begin(env: PipelineEnv, names: tuple[str, ...]) -> None:
    env.each(
        names,
        "create table {t} (id int primary key, v text); insert into {t} select n, 'v' from generate_series(1, 9) n",
    )
    env.bootstrap()


def outcomes(found: Comparison) -> dict[str, str]:
    return {finding.name: finding.outcome for finding in found.tables}


@pytest.mark.slow
@pytest.mark.spark
def test_a_table_that_cannot_be_read_is_a_finding_and_all_others_are_compared(env16: PipelineEnv) -> None:
    begin(env16, (*DAMAGED, LOCKED_OUT, "a_wrong_one", "z_sound"))
    ctx, merged = as_reader(env16), []

    def merge() -> None:
        """Publish the cut that is compared; then the lake is damaged, before it is read."""
        merged.append(env16.merge())
        if len(merged) == 1:
            env16.spark.sql(f"delete from lake.{env16.name}.public.a_wrong_one where id = 7")
            damage(env16)

    try:
        found = verify(ctx, merge=merge)

        unread = dict.fromkeys((*DAMAGED, LOCKED_OUT), "unreadable")
        assert outcomes(found) == {**unread, "a_wrong_one": "differs", "z_sound": "equal"}
        reasons = {each.name: each.reason or "" for each in found.tables}
        assert "[source-auth]" in reasons[LOCKED_OUT]
        assert {name for name, reason in reasons.items() if "[lake-unreadable]" in reason} == set(DAMAGED)
        assert "catalog has none of that name" in reasons["row"]
        alarms = {(alarm.slug, alarm.subject) for alarm in env16.ctx.ledger.health.alarms(env16.name)}
        assert {("verify-unreadable", f"public.{name}") for name in unread} | {
            ("verify-differs", "public.a_wrong_one")
        } == alarms
        assert (
            found.summary() | {"unreadable": 7, "unread": sorted(f"public.{name}" for name in unread)}
            == found.summary()
        )
        with pytest.raises(LakeError, match=r"\[verify-differs\]"):
            require_equal(found.differing, found.lsn, found.unreadable)
        with pytest.raises(LakeError, match=r"\[verify-unreadable\].*public\.closed"):
            require_equal([], found.lsn, found.unreadable)
        assert "verify" not in env16.ctx.ledger.barriers.all(env16.name).values()

        compared = {table.name: table for table in compare.compare(ctx).tables}
        assert {name for name, table in compared.items() if table.trouble is not None} == {*unread} - {"row"}
        assert compared["z_sound"].equal
        assert not compared["row"].in_lake
    finally:
        env16.sql(f"drop owned by reader_{env16.name}; drop role reader_{env16.name}")


@pytest.mark.spark
@pytest.mark.slow
def test_a_sample_continues_beyond_a_table_whose_keys_cannot_be_cut(env16: PipelineEnv) -> None:
    env16.settings["verify"] = {"share": "1/2", "whole_below": 1}
    begin(env16, ("data", "z_sound"))
    files(env16, "data")["data"].unlink()

    found = verify(env16.ctx, mode="sample", merge=lambda: str(env16.merge()))

    assert outcomes(found) == {"data": "unreadable", "z_sound": "equal"}


@pytest.mark.spark
@pytest.mark.slow
def test_the_alarm_of_an_unreadable_table_closes_when_it_was_read_again(env16: PipelineEnv) -> None:
    begin(env16, ("data", "z_sound"))
    file = files(env16, "data")["data"]
    kept = file.read_bytes()

    def merge() -> None:
        env16.merge()
        file.unlink(missing_ok=True)

    assert outcomes(verify(env16.ctx, merge=merge))["data"] == "unreadable"
    file.write_bytes(kept)

    assert outcomes(verify(env16.ctx, merge=lambda: str(env16.merge())))["data"] == "equal"
    assert env16.ctx.ledger.health.alarms(env16.name) == []


def while_read(env: PipelineEnv, monkeypatch: pytest.MonkeyPatch, where: Any, name: str, statement: str) -> None:
    """Run a statement on the source once, when this function is next called."""
    original: Callable[..., Any] = getattr(where, name)
    left = [statement]

    def wrapped(*arguments: Any, **named: Any) -> Any:
        if left:
            env.sql(left.pop())
        return original(*arguments, **named)

    monkeypatch.setattr(where, name, wrapped)


@pytest.mark.slow
@pytest.mark.spark
def test_what_changes_while_it_is_compared_is_no_difference(
    env16: PipelineEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    env16.sql(
        "create table m (id int primary key, v text) partition by range (id);"
        "create table m1 partition of m for values from (0) to (50);"
        "create table m2 partition of m for values from (50) to (100);"
        "insert into m select n, 'v' from generate_series(1, 99) n;"
        "create table gone (id int primary key); insert into gone values (1)"
    )
    begin(env16, ("t", "z_sound"))

    # a truncated leaf, a table that is dropped: what the position showed can be read no more
    while_read(
        env16,
        monkeypatch,
        compare,
        "fingerprint",
        "truncate m1; drop table gone; truncate t; insert into t values (1)",
    )
    found = verify(env16.ctx, merge=lambda: str(env16.merge()))
    assert outcomes(found) == {"m": "skipped", "gone": "skipped", "t": "skipped", "z_sound": "equal"}
    assert (found.differing, found.unreadable) == ([], [])
    assert env16.ctx.ledger.health.alarms(env16.name) == []

    # without a barrier there is no position: it takes a later look
    env16.follow()
    fingerprint, left = compare.fingerprint, ["truncate t; insert into t values (1, null)"]

    def meanwhile(table: ComparedTable, *arguments: Any) -> Fingerprint:
        if left and table.name == "t":  # when the rows of another table have fixed the moment
            env16.sql(left.pop())
        return fingerprint(table, *arguments)

    monkeypatch.setattr(compare, "fingerprint", meanwhile)
    compared = {table.name: table for table in compare.compare(env16.ctx).tables}
    assert any("public.t: could not be read, [table-rewritten]" in line for line in env16.lines)
    assert compared["t"].trouble is None
    assert compared["z_sound"].equal


def test_only_what_is_unreadable_is_reported_as_such() -> None:
    unread = TableComparison("public", "t", ("n", "t"), trouble=LakeError("lake-unreadable", "gone"))
    differs = TableComparison("public", "u", ("n", "u"), missing=1)
    assert "[lake-unreadable] gone" in (unread.reason or "")
    for lsn, at in ((None, "now"), (Lsn(1), "at 0/1")):
        some = Comparison((unread,), lsn=lsn)
        with pytest.raises(LakeError, match=rf"\[verify-unreadable\].*{at}.*public\.t"):
            require_equal(some.differing, some.lsn, some.unreadable)
        more = Comparison((unread, differs), lsn=lsn)
        with pytest.raises(LakeError, match=rf"\[verify-differs\].*{at}.*public\.u"):
            require_equal(more.differing, more.lsn, more.unreadable)

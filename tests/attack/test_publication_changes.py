"""What an altered publication has kept out of the stream is noticed, also where the alteration was undone."""

from __future__ import annotations

import pytest

from penstock.errors import LakeError, SourceError
from penstock.flow.check import check
from penstock.flow.copy import added_tables
from penstock.flow.copy.added_tables import wait_for_open_transactions
from penstock.flow.health.check import look
from penstock.flow.rebuild import run as rebuild
from penstock.flow.rebuild.resync_request import to_copy
from penstock.flow.recover import resume
from tests.pipeline_env import PipelineEnv
from tests.scenarios.members import begin, states, told
from tests.scenarios.recovery import SHOP, equal, flush, follows

TABLES = """
create table t (id int primary key, v int, s text);
create table u (id int primary key, v int);
create table root (id int primary key, v int) partition by range (id);
create table leaf partition of root for values from (0) to (100);
create table leaf2 partition of root for values from (100) to (200);
insert into t select n, n, n from generate_series(1, 9) n;
insert into root select n, n from generate_series(1, 9) n;
"""
ALL = {"t", "u", "root"}


def adopted(world: PipelineEnv, publication: str, tables: str = TABLES) -> str:
    """Let a pipeline adopt a publication that its owner has made; return its name."""
    name = world.ctx.pipeline.publication
    world.settings["source"] = {**world.settings["source"], "adopt": True}
    world.sql(f"{tables} create publication {name} {publication}")
    begin(world, "select")
    world.capture()
    return name


def own(world: PipelineEnv) -> str:
    """Begin with a publication that Penstock makes; return its name."""
    begin(world, TABLES)
    world.capture()
    assert set(states(world).values()) == {"copied"}
    return world.ctx.pipeline.publication


def paused(world: PipelineEnv) -> dict[str, str]:
    """Return the reasons of the tables that were paused, each by the one kind."""
    found = [table for table in world.ctx.ledger.tables.all(world.name) if table.state == "paused"]
    assert {table.paused_slug for table in found} <= {"publication-changed"}
    return {table.name: table.paused_reason or "" for table in found}


def captured(world: PipelineEnv, statements: str) -> dict[str, str]:
    """Capture what these statements leave; return the reasons of the tables that were paused."""
    world.sql(statements)
    flush(world)
    world.capture()
    return paused(world)


def alarms(world: PipelineEnv) -> dict[str, str]:
    """Return the levels of what slot health finds wrong with the publication."""
    return {each.slug: each.level for each in look(world.ctx).findings if each.slug == "publication-narrow"}


# --- the publication's own row -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("there", "back"),
    [
        ("set (publish = 'insert')", "set (publish = 'insert, update, delete, truncate')"),
        ("set (publish_via_partition_root = false)", "set (publish_via_partition_root = true)"),
    ],
)
def test_options_changed_and_changed_back_between_two_captures_pause_every_table(
    bare: PipelineEnv, there: str, back: str
) -> None:
    name = own(bare)
    changes = "update t set v = -v where id < 3; delete from t where id > 7; update root set v = -v; truncate u"

    reasons = captured(bare, f"alter publication {name} {there}; {changes}; alter publication {name} {back}")

    assert set(reasons) == ALL
    assert all("inserts, updates, deletes, truncates" in reason for reason in reasons.values())
    assert added_tables.tables_to_announce(bare.ctx) == ["public.root", "public.t", "public.u"]
    assert captured(bare, "insert into t values (50)") == reasons
    assert len(told(bare, "publication-changed")) == 1, "one event, not one per capture or table"


def test_a_publication_narrowed_for_long_pauses_its_tables_until_it_is_whole_and_copies_nothing_meanwhile(
    bare: PipelineEnv,
) -> None:
    name = own(bare)
    assert alarms(bare) == {}

    reasons = captured(bare, f"alter publication {name} set (publish = 'insert, truncate'); delete from t where id = 1")
    assert set(reasons) == ALL
    assert "does not send updates, deletes any more" in reasons["t"]
    assert alarms(bare) == {"publication-narrow": "critical"}
    assert added_tables.tables_to_announce(bare.ctx) == []
    assert to_copy(bare.ctx, None) == []
    with pytest.raises(LakeError, match=r"publication-changed.*does not send updates, deletes"):
        resume.resume_table(bare.ctx, "public.t")

    bare.sql("create table late (id int primary key)")
    bare.capture()
    assert states(bare)["late"] == "waiting"
    assert added_tables.tables_to_announce(bare.ctx) == [], (
        "nor is a table that joins, of which the lake would lack changes"
    )

    reasons = captured(bare, f"alter publication {name} set (publish = 'insert, update, delete, truncate')")
    assert set(reasons) == {*ALL, "late"}
    assert "it sends updates, deletes again" in reasons["t"]
    assert alarms(bare) == {}
    assert len(added_tables.tables_to_announce(bare.ctx)) == 4
    resume.resume_table(bare.ctx, "public.t")
    assert states(bare)["t"] == "copied", "by a person who knows that nothing was written"


def test_a_partitioned_table_stays_while_its_changes_come_under_its_partitions_names(bare: PipelineEnv) -> None:
    bare.settings["tables"] = {"include": ["public.*"], "on_removed": "drop"}
    name = own(bare)

    captured(bare, f"alter publication {name} set (publish_via_partition_root = false); update root set v = -v")
    assert states(bare) == dict.fromkeys(ALL, "paused"), "the root has not left, its partitions have not joined"
    assert alarms(bare) == {"publication-narrow": "critical"}
    captured(bare, "create table leaf3 partition of root for values from (200) to (300); insert into root values (250)")
    assert states(bare) == dict.fromkeys(ALL, "paused")
    assert added_tables.tables_to_announce(bare.ctx) == []

    captured(bare, f"alter publication {name} set (publish_via_partition_root = true)")
    assert states(bare) == dict.fromkeys(ALL, "paused")
    assert added_tables.tables_to_announce(bare.ctx) == ["public.root", "public.t", "public.u"]
    assert told(bare, "table-removed") == told(bare, "table-added") == []


def test_what_happens_between_the_bootstrap_and_the_first_capture_is_noticed(bare16: PipelineEnv) -> None:
    begin(bare16, TABLES)
    name = bare16.ctx.pipeline.publication
    bare16.sql(
        f"alter publication {name} set (publish = 'insert'); delete from t; "
        f"alter publication {name} set (publish = 'insert, update, delete, truncate')"
    )

    assert set(captured(bare16, "select")) == ALL


def test_a_copy_waits_for_transactions_that_wrote_while_the_publication_was_narrow(bare16: PipelineEnv) -> None:
    name = own(bare16)
    with bare16.source.connect() as early:
        bare16.sql(f"alter publication {name} set (publish = 'insert')")
        early.execute("begin; delete from t where id = 1")
        captured(bare16, f"alter publication {name} set (publish = 'insert, update, delete, truncate')")
        with pytest.raises(SourceError, match="table-joining"):
            wait_for_open_transactions(bare16.ctx, to_copy(bare16.ctx, None), wait=0)
        early.execute("commit")
    wait_for_open_transactions(bare16.ctx, to_copy(bare16.ctx, None), wait=0)


def test_a_table_paused_for_another_reason_keeps_it_in_words(bare16: PipelineEnv) -> None:
    name = own(bare16)
    (table,) = (each for each in bare16.ctx.ledger.tables.all(bare16.name) if each.name == "t")
    bare16.ctx.ledger.tables.pause(bare16.name, table.oid, slug="divergence", reason="a row was not there")

    reasons = captured(bare16, f"create role new_owner superuser; alter publication {name} owner to new_owner")
    assert set(reasons) == ALL, "the catalog does not tell it from an option that was changed and changed back"
    assert "its owner is another" in reasons["u"]
    assert reasons["t"].endswith("; before that it was paused by divergence: a row was not there")


# --- one table's membership --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("there", "back"),
    [
        ("drop table t", "add table only t"),
        ("set table only t where (id > 5), only u", "set table only t, only u"),
        ("set table only t (id, v), only u", "set table only t, only u"),
        ("set table only u", "set table only t, only u"),
    ],
)
def test_a_table_out_and_in_or_with_another_filter_or_columns_for_a_while_is_paused_alone(
    bare: PipelineEnv, there: str, back: str
) -> None:
    name = adopted(bare, "for table only t, only u with (publish_via_partition_root = true)")

    reasons = captured(
        bare, f"alter publication {name} {there}; insert into t values (1000); alter publication {name} {back}"
    )

    assert set(reasons) == {"t"}
    assert "may be in no window" in reasons["t"]
    assert added_tables.tables_to_announce(bare.ctx) == ["public.t"]
    assert captured(bare, "insert into t values (1001)") == reasons, "told once"
    assert len(told(bare, "publication-changed")) == 1


def test_a_filter_that_stays_is_named(bare: PipelineEnv) -> None:
    name = adopted(bare, "for table only t, only u with (publish_via_partition_root = true)")

    reasons = captured(bare, f"alter publication {name} set table only t where (id > 5), only u")

    assert set(reasons) == {"t"}
    assert "row filter" in reasons["t"]


@pytest.mark.parametrize(
    "away",
    [
        "alter table t set schema elsewhere; insert into elsewhere.t values (1000); alter table elsewhere.t set schema public",
        "alter publication {0} drop tables in schema public; insert into t values (1000);"
        "alter publication {0} add tables in schema public",
    ],
)
def test_a_table_of_a_published_schema_that_was_away_for_a_while_is_paused(bare: PipelineEnv, away: str) -> None:
    name = adopted(
        bare,
        "for tables in schema public with (publish_via_partition_root = true)",
        TABLES + "create schema elsewhere;",
    )
    assert set(states(bare).values()) == {"copied"}

    reasons = captured(bare, away.format(name))

    assert set(reasons) == ({"t"} if "set schema" in away else ALL)


# --- nothing ---------------------------------------------------------------------------------------------------------------


def test_what_hides_nothing_changes_nothing(bare: PipelineEnv) -> None:
    name = own(bare)
    for catalog in ("pg_publication", "pg_publication_rel", "pg_depend"):
        bare.sql(f"vacuum (full, freeze) {catalog}")

    reasons = captured(
        bare,
        f"comment on publication {name} is 'made by penstock for pipeline {bare.name}';"
        "create table other (id int primary key); create publication second for table t with (publish = 'insert');"
        "alter publication second set (publish = 'delete'); drop publication second;"
        "grant select on t to public; comment on table t is 'x'; create index on t (v); analyze t",
    )
    assert reasons == {}
    assert states(bare) == {**dict.fromkeys(ALL, "copied"), "other": "waiting"}, "which Penstock itself has added"
    bare.settings["tables"] = {"include": ["public.*"], "exclude": ["public.other"]}
    assert captured(bare, "insert into t values (1000)") == {}
    assert states(bare) == {**dict.fromkeys(ALL, "copied"), "other": "dropped"}
    assert alarms(bare) == {}
    assert told(bare, "publication-changed") == []


def test_a_publication_that_never_sent_everything_is_an_alarm_as_long_as_it_lasts_and_pauses_nothing(
    bare16: PipelineEnv,
) -> None:
    name = adopted(bare16, "for table only t, only u with (publish = 'insert')")

    assert captured(bare16, "insert into t values (1000); delete from t where id = 1") == {}
    assert states(bare16) == {"t": "copied", "u": "copied"}
    assert alarms(bare16) == {"publication-narrow": "warn"}
    reasons = captured(bare16, f"alter publication {name} set (publish = 'insert, update, delete, truncate')")
    assert set(reasons) == {"t", "u"}
    assert "what was not sent before" in reasons["t"]
    assert alarms(bare16) == {}


# --- and what is meant to be narrow -----------------------------------------------------------------------------------------


def meant(world: PipelineEnv, *kinds: str) -> None:
    world.settings["source"] = {**world.settings["source"], "publish": list(kinds)}


def checked(world: PipelineEnv) -> list[str]:
    """Return what the preflight says of the publication."""
    return [f"{each.level}: {each.message}" for each in check(world.ctx) if each.subject.startswith("publication ")]


def test_a_publication_that_is_narrow_as_the_file_says_is_no_alarm_and_a_narrower_one_is(bare16: PipelineEnv) -> None:
    name = adopted(bare16, "for table only t, only u with (publish = 'insert, truncate')")
    assert alarms(bare16) == {"publication-narrow": "warn"}
    assert any("does not publish update, delete" in line for line in checked(bare16))

    meant(bare16, "insert", "truncate")
    bare16.capture()
    assert alarms(bare16) == {}
    assert "ok: publishes insert, truncate only, as source.publish says" in "\n".join(checked(bare16))

    reasons = captured(bare16, f"alter publication {name} set (publish = 'insert')")
    assert set(reasons) == {"t", "u"}
    assert alarms(bare16) == {"publication-narrow": "critical"}
    assert added_tables.tables_to_announce(bare16.ctx) == []

    meant(bare16, "insert")
    assert captured(bare16, "insert into t values (2000)") == reasons
    assert alarms(bare16) == {}
    assert added_tables.tables_to_announce(bare16.ctx) == ["public.t", "public.u"], (
        "which lack what was sent before and is not any more"
    )

    captured(bare16, f"alter publication {name} set (publish = 'insert, update')")
    assert any("it publishes update besides" in line for line in checked(bare16))
    assert alarms(bare16) == {}


def test_a_publication_that_penstock_makes_publishes_what_the_file_says(bare16: PipelineEnv) -> None:
    meant(bare16, "insert")
    begin(bare16, "create table log (id int); insert into log values (1)")
    assert captured(bare16, "insert into log values (2)") == {}

    name = bare16.ctx.pipeline.publication
    kinds = "pubinsert, pubupdate, pubdelete, pubtruncate, pubviaroot"
    assert bare16.sql(f"select {kinds} from pg_publication where pubname = '{name}'") == [
        (True, False, False, False, True)
    ]
    assert alarms(bare16) == {}
    bare16.sql("update log set id = -id")  # a table without a key takes updates


# --- and the lake is right again -----------------------------------------------------------------------------------------


@pytest.mark.spark
@pytest.mark.slow
def test_the_lake_equals_the_source_after_the_copies_that_follow(world16: PipelineEnv) -> None:
    world = world16
    world.sql(SHOP)
    world.bootstrap()
    name = world.ctx.pipeline.publication
    world.sql(
        f"alter publication {name} set (publish = 'insert'); delete from item where id < 5; update visit set n = 9;"
        f"alter publication {name} set (publish = 'insert, update, delete, truncate'); insert into item values (900)"
    )
    flush(world)
    world.capture()
    world.merge()
    assert set(states(world).values()) == {"paused"}

    assert len(added_tables.tables_to_announce(world.ctx)) == 3
    ids = rebuild.resync(world.ctx, None, world.submit, woken=True)
    assert rebuild.switch(world.ctx, ids, world.submit)

    assert set(states(world).values()) == {"ready"}
    equal(world)
    follows(world)

"""`penstock plan-migration` says before a migration what capture will do after it, and ends as a CI job needs it."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from penstock.errors import Trouble
from penstock.ledger import Ledger
from penstock.source import ddl_trigger
from stack.servers.postgres import Database, Server
from tests.flow.trial.conftest import Plan
from tests.ledger.conftest import bootstrap, copy, facts
from tests.pipeline_env import connection


def tables(output: str) -> dict[str, list[tuple[str, str]]]:
    """Return rule and outcome of each change by table, from the plain data."""
    data = json.loads(output)
    return {
        table["table"]: [(change["rule"], change["outcome"]) for change in table["changes"]] for table in data["tables"]
    }


def test_what_is_followed_as_metadata_is_free(planned: Plan, shop: Database, scratch: Server) -> None:
    result = planned(
        shop,
        "alter table customer rename name to full_name; alter table customer alter full_name type text;\n"
        "alter table customer drop note, add at date default '2026-01-01'; alter table orders replica identity full;",
        on=scratch,
    )

    assert result.exit_code == 0, result.output
    assert "FREE    public.customer" in result.stdout
    assert "rename-column: column name was renamed to full_name" in result.stdout
    assert "readers  see the column under its new name; older cuts keep the old name" in result.stdout
    assert result.stdout.rstrip().endswith("free: 2 tables followed without a copy, 1 table unchanged (exit status 0)")


def test_nothing_is_changed_at_the_source_and_nothing_is_left_on_the_scratch_server(
    planned: Plan, shop: Database, scratch: Server
) -> None:
    looked = "select oid, relname, xmin from pg_class order by 1"
    before = shop.execute(looked)

    planned(shop, "drop table orders; alter table customer add x int", on=scratch)
    planned(shop, "alter table customer add x int; select 1/0", on=scratch)

    assert shop.execute(looked) == before
    assert Database(scratch, "postgres").execute("select datname from pg_database where datname ~ 'penstock'") == []


def test_what_rewrites_a_table_copies_it_also_without_rows(planned: Plan, shop: Database, scratch: Server) -> None:
    result = planned(
        shop,
        "alter table orders alter total type float8; alter table customer add token text default md5(random()::text)",
        "--json",
        on=scratch,
    )

    assert result.exit_code == 1, result.output
    assert set(tables(result.stdout)) == {"public.orders", "public.customer"}
    assert json.loads(result.stdout)["tables"][1]["copy"]["bytes"] == 8192


def test_a_source_with_the_event_trigger_is_tried_like_any_other(
    planned: Plan, shop: Database, scratch: Server
) -> None:
    shop.execute(ddl_trigger.install_statement())

    result = planned(shop, "alter table customer drop note; alter table customer add note text", on=scratch)

    assert result.exit_code == 0, result.output
    assert "drop-column: column note was dropped" in result.stdout


WIDER = "alter table customer alter id type bigint; alter table orders alter customer type bigint;"


@pytest.mark.parametrize(
    ("listens", "migration", "status"),
    [
        pytest.param(True, WIDER, 0, id="told"),
        pytest.param(False, WIDER, 1, id="not asked for"),
        pytest.param(True, WIDER.replace("bigint;", "bigint using 7;"), 1, id="computed"),
    ],
)
def test_a_wider_key_is_free_where_the_event_trigger_tells_that_its_values_are_kept(
    planned: Plan, shop: Database, scratch: Server, *, listens: bool, migration: str, status: int
) -> None:
    shop.execute(ddl_trigger.install_statement())

    result = planned(shop, migration, "--json", on=scratch, source={"ddl_trigger": listens})

    assert result.exit_code == status, result.output
    found = json.loads(result.stdout)["tables"]
    assert [table["table"] for table in found] == ["public.customer", "public.orders"]
    rules = {change["rule"] for table in found for change in table["changes"]}
    assert rules == ({"schema-change"} if status else {"retype-column"})


def test_an_unchanged_schema_is_free(planned: Plan, shop: Database, scratch: Server) -> None:
    result = planned(shop, "insert into customer values (99, 'new')", on=scratch)

    assert (result.exit_code, tables(planned(shop, "", "--json", on=scratch).stdout)) == (0, {})
    assert "free: 3 tables unchanged" in result.stdout


def test_statements_that_no_transaction_takes_and_psql_commands_run_as_psql_runs_them(
    planned: Plan, shop: Database, scratch: Server
) -> None:
    result = planned(
        shop,
        r"""
\set column extra
create index concurrently on orders (placed);
alter type mood add value 'glad';
begin; alter table customer add :column int; commit;
begin; alter table customer add undone int; rollback;
do $$ declare name text; begin
  for name in select c.oid::regclass from pg_class c where relname in ('orders') loop
    execute format('alter table %s add looped int', name);
  end loop;
end $$;
copy customer (id, name, mood) from stdin;
7	x	glad
\.
""",
        "--json",
        on=scratch,
    )

    assert result.exit_code == 0, result.output
    assert tables(result.stdout) == {
        "public.customer": [("add-column", "free")],
        "public.orders": [("add-column", "free")],
    }


def test_partitions_that_are_made_are_free_and_those_with_rows_are_copied(
    planned: Plan, shop: Database, scratch: Server
) -> None:
    made = "create table visit_4 partition of visit for values from ('2026-04-01') to ('2026-05-01');"
    made += "create table visit_5 (like visit including all);"
    made += "alter table visit attach partition visit_5 for values from ('2026-05-01') to ('2026-06-01')"
    filled = "alter table visit attach partition stored_visits for values from ('2026-03-01') to ('2026-04-01')"

    free, copied = planned(shop, made, "--json", on=scratch), planned(shop, filled, on=scratch)

    assert (free.exit_code, copied.exit_code) == (0, 1), free.output + copied.output
    assert "partition stored_visits was attached, and nothing tells rows that it had" in copied.stdout
    assert "a copy of stored_visits:" in copied.stdout


@pytest.mark.slow
def test_a_new_table_joins_and_one_without_a_key_waits_for_a_person(
    planned: Plan, shop15: Database, scratch15: Server
) -> None:
    keyed = planned(shop15, "create table fresh (id int primary key)", on=scratch15)
    keyless = planned(shop15, "create table fresh (id int)", on=scratch15)
    replaced = planned(shop15, "drop table orders; create table orders (id int primary key)", "--json", on=scratch15)

    assert (keyed.exit_code, keyless.exit_code, replaced.exit_code) == (0, 2, 1)
    assert "see a new table shop.public.fresh, after its copy" in keyed.stdout
    assert "PAUSES  public.fresh" in keyless.stdout
    assert tables(replaced.stdout) == {"public.orders": [("table-removed", "free"), ("table-added", "copies")]}


def test_what_loses_or_needs_a_person_ends_with_two(planned: Plan, shop15: Database, scratch15: Server) -> None:
    lost = planned(shop15, "alter table customer drop note", on=scratch15, lake={"on_dropped_column": "drop"})
    removed = planned(shop15, "drop table orders", on=scratch15, tables={"on_removed": "drop"})
    by_hand = planned(shop15, "alter table orders alter id type text", on=scratch15, tables={"on_change": "pause"})
    keyless = planned(shop15, "alter table orders drop constraint orders_pkey", on=scratch15)
    halted = planned(shop15, "drop publication penstock_shop", on=scratch15)
    narrow = planned(shop15, "alter publication penstock_shop set (publish = 'insert')", on=scratch15)

    assert {each.exit_code for each in (lost, removed, by_hand, keyless, halted, narrow)} == {2}
    assert "LOSES   public.customer" in lost.stdout
    assert "LOSES   public.orders" in removed.stdout
    assert "until a person runs `penstock resync`" in by_hand.stdout
    assert "refuses the application's updates and deletes until there is a key" in keyless.stdout
    assert "pauses: the whole pipeline stops" in halted.stdout
    assert "it does not send updates, deletes, truncates any more" in narrow.stdout


@pytest.mark.slow
def test_the_cost_of_a_copy_is_that_of_the_last_one(
    planned: Plan, shop15: Database, scratch15: Server, postgres16: Server, lead: Callable[..., None]
) -> None:
    ((orders,),) = shop15.execute("select 'orders'::regclass::oid")
    with postgres16.temporary_database("ledger_of_plans") as ledger:
        lead("penstock_ledger", ledger)
        known = Ledger(connection(ledger, "penstock_ledger"))
        known.migrate()
        bootstrap(known, "shop")
        known.tables.save("shop", [replace(facts(orders, "orders"), schema="public")])
        copy(known, "shop", orders)
        known.tables.stop("shop", {orders: Trouble.usual("schema-change", "it changed")})
        ledger.execute(
            "update penstock.load set copy_started_at = '2026-01-01 10:00Z', copied_at = '2026-01-01 10:04Z', rows = 2000000"
        )
        (before,) = ledger.execute("select count(*) from penstock.event")
        shown = planned(shop15, "alter table orders alter id type text", on=scratch15)
        plain = planned(shop15, "alter table orders alter id type text", "--json", on=scratch15)
        (after,) = ledger.execute("select count(*) from penstock.event")

    assert "public.orders (paused now: it waits for a copy anyway)" in shown.stdout
    assert "8.0 KiB at the source; its last copy, of 2026-01-01, had 2,000,000 rows and took 4 min" in shown.stdout
    assert json.loads(plain.stdout)["tables"][0]["copy"] == {
        "bytes": 8192,
        "last_rows": 2_000_000,
        "last_minutes": 4.0,
        "last_at": "2026-01-01T10:04:00+00:00",
    }
    assert after == before

"""What cannot be tried ends with a status of its own, says why and what to do, and shows neither a value nor a password."""

import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from stack.servers.binaries import Binaries
from stack.servers.postgres import Database, Server
from tests.flow.trial.conftest import Plan
from tests.waiting import wait_until

ROOT = Path(__file__).parents[3]


def test_a_failing_statement_is_named_by_its_line_without_the_values_that_it_met(
    planned: Plan, shop15: Database, postgres16: Server
) -> None:
    undefined = planned(
        shop15, "alter table orders add x int;\n\n-- next\nalter table nix\n  add y int;", on=postgres16
    )
    doubled = "insert into customer values (1, 'a secret');"
    double = planned(shop15, f"begin;\n{doubled}\n{doubled}\ncommit;", on=postgres16)
    reported = planned(shop15, "do $$ begin raise exception 'run 0041 first'; end $$", on=postgres16)

    assert (undefined.exit_code, double.exit_code, reported.exit_code) == (3, 3, 3)
    assert (
        'the statement that ends at line 5 of 0042_change.sql failed: relation "nix" does not exist (42P01)'
        in undefined.output
    )
    assert "it is: alter table nix add y int; correct the file" in undefined.output
    assert "the statement that ends at line 3" in double.output
    assert "(23505)" in double.output
    assert "secret" not in double.output
    assert "run 0041 first" in reported.output


def test_a_file_that_ends_inside_a_transaction_or_leads_elsewhere_is_refused(
    planned: Plan, shop15: Database, postgres16: Server, tmp_path: Path
) -> None:
    left_open = planned(shop15, "begin; alter table orders add x int;", on=postgres16)
    elsewhere = planned(shop15, "select 1;\n\\c postgres\ndrop table orders;", on=postgres16)
    dump = tmp_path / "structure.sql"
    dump.write_text("create database shop;\n\\connect shop\ncreate table orders (id int);")
    created = planned(shop15, "", "--schema-file", dump, on=postgres16)

    assert (left_open.exit_code, elsewhere.exit_code, created.exit_code) == (3, 3, 3)
    assert "leave out --create" in created.output
    assert "end it with COMMIT" in left_open.output
    assert "line 2 connects to another" in elsewhere.output


def test_a_source_without_its_publication_is_taken_as_bootstrap_would_make_it(
    planned: Plan, shop15: Database, postgres16: Server
) -> None:
    shop15.execute("drop publication penstock_shop")

    result = planned(shop15, "alter table orders add x int", on=postgres16)

    assert result.exit_code == 0, result.output
    assert "1 table followed without a copy, 2 tables unchanged" in result.stdout


def test_errors_that_a_file_passes_over_are_noted(planned: Plan, shop15: Database, postgres16: Server) -> None:
    result = planned(
        shop15, "\\set ON_ERROR_STOP off\nalter table nix add x int;\nalter table orders add x int;", on=postgres16
    )

    assert result.exit_code == 0
    assert (
        'note: passed over: the statement that ends at line 2 of 0042_change.sql failed: relation "nix"'
        in result.stdout
    )


@pytest.mark.slow
def test_several_files_run_in_their_order(planned: Plan, shop15: Database, postgres16: Server, tmp_path: Path) -> None:
    first, second = tmp_path / "0041.sql", tmp_path / "0042.sql"
    first.write_text("alter table orders add x int;")
    second.write_text("alter table orders rename x to y;")

    result = planned(shop15, first, second, on=postgres16)

    assert "column y was added" in result.stdout
    assert planned(shop15, second, first, on=postgres16).exit_code == 3


def test_wrong_input_ends_with_three_as_nothing_was_said(
    planned: Plan, shop15: Database, postgres16: Server, tmp_path: Path
) -> None:
    missing = planned(shop15, tmp_path / "nix.sql", on=postgres16)
    option = planned(shop15, "", "--jsom", on=postgres16)
    folder = planned(shop15, "", "--programs", tmp_path)
    connection = planned(shop15, "", "--scratch-connection", "nix")
    itself = planned(shop15, "", on=shop15.server)

    assert {each.exit_code for each in (missing, option, folder, connection, itself)} == {3}
    assert "No such file or directory; name one that is there" in missing.output
    assert "--jsom" in option.output
    assert (
        "expected PostgreSQL's programs initdb, pg_ctl, postgres, pg_dump, pg_restore, psql of version 15"
        in folder.output
    )
    assert "AIRFLOW_CONN_NIX is not set" in connection.output
    assert "expected connection 'penstock_scratch' to lead to another server than the source's" in itself.output


def test_a_role_that_may_not_read_every_table_is_told_which_connection_to_name(
    planned: Plan, shop15: Database, postgres16: Server, lead: Callable[..., None]
) -> None:
    role = f"reader_{shop15.name}"
    shop15.execute(
        f"create role {role} login replication password 'only'; grant select on customer, orders, visit to {role}"
    )
    try:
        lead("penstock_owner", shop15)
        login = {"login": role, "password": "only"}
        refused = planned(shop15, "", on=postgres16, login=login)
        allowed = planned(
            shop15,
            "create table fresh (id int primary key)",
            "--schema-connection",
            "penstock_owner",
            on=postgres16,
            login=login,
        )
    finally:
        shop15.execute(f"drop owned by {role}; drop role {role}")

    assert (refused.exit_code, allowed.exit_code) == (3, 0), allowed.output
    assert "permission denied for table" in refused.output
    assert "by --schema-connection, or a dump by --schema-file" in refused.output
    assert (
        "note: Penstock may not alter publication penstock_shop (this role does not own it): its owner runs "
        'alter publication "penstock_shop" add table only "public"."fresh"'
    ) in allowed.stdout


@pytest.mark.slow
def test_an_extension_that_the_scratch_server_lacks_is_named(
    planned: Plan, shop15: Database, postgres16: Server
) -> None:
    shop15.execute("create extension pg_stat_statements")
    needless = planned(shop15, "alter table orders add x int", on=postgres16)
    shop15.execute("create extension citext; alter table customer alter note type citext")
    needed = planned(shop15, "alter table orders add x int", on=postgres16)

    assert (needless.exit_code, needed.exit_code) == (0, 3), needless.output + needed.output
    assert (
        "note: left out of the scratch database: CREATE EXTENSION IF NOT EXISTS pg_stat_statements WITH SCHEMA public: "
        'extension "pg_stat_statements" is not available\n'
    ) in needless.stdout
    assert "PostgreSQL 15" in needless.stdout
    assert "tried on   PostgreSQL 16" in needless.stdout
    assert "public.customer is missing" in needed.output
    assert 'extension "citext" is not available' in needed.output


def test_a_server_for_the_time_has_the_roles_and_the_search_path_of_the_source(planned: Plan, shop: Database) -> None:
    role = f"app_{shop.name}"
    shop.execute(f"create schema app; create table app.cart (id int primary key); create role {role}")
    shop.execute(f"alter database {shop.name} set search_path to app, public")
    try:
        tables = {"include": ["public.*", "app.*"]}
        result = planned(
            shop, f"grant select on cart to {role}; set role {role}; alter table orders add x int", tables=tables
        )
    finally:
        shop.execute(f"drop role {role}")

    assert result.exit_code == 0, result.output
    assert "add-column: column x was added" in result.stdout


@pytest.mark.slow
def test_a_schema_file_needs_no_source(
    planned: Plan, shop: Database, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    structure, roles = tmp_path / "structure.sql", tmp_path / "roles.sql"
    shop.execute(
        "create role of_the_file; grant select on orders to of_the_file; alter table customer owner to of_the_file"
    )
    structure.write_text(shop.server.run_program("pg_dump", "--schema-only", shop.name))
    shop.execute("alter table customer owner to postgres; drop owned by of_the_file; drop role of_the_file")
    roles.write_text("create role of_the_file;")
    files = ("--schema-file", roles, "--schema-file", structure)

    compared = planned(shop, "alter table orders add x int", *files)
    shop.execute("alter table orders add behind int")
    behind = planned(shop, "alter table orders add x int", *files)
    alone = planned(shop, "alter table orders alter total type text", *files, reachable=False)

    assert (compared.exit_code, behind.exit_code, alone.exit_code) == (0, 0, 1), (
        compared.output + behind.output + alone.output
    )
    assert "left out" not in compared.stdout
    assert "note: the schema file is not what the source has: public.orders.behind is missing" in behind.stdout
    assert "source     not asked" in alone.stdout
    assert f"tried on   PostgreSQL {shop.server.major}" in alone.stdout
    assert "cost     a copy of the key and total" in alone.stdout  # 15 gives the columns after it new rows, too
    assert ", of unknown size" in alone.stdout


def test_no_command_line_shows_a_password_or_a_connection_of_this_process(
    planned: Plan, shop15: Database, postgres16: Server, binaries15: Binaries, tmp_path: Path
) -> None:
    log, folder = tmp_path / "seen", tmp_path / "programs"
    folder.mkdir()
    for name in ("pg_dump", "pg_restore", "psql"):
        program = folder / name
        program.write_text(
            f'#!/bin/sh\necho "$0 $*" >> {log}\nenv | grep AIRFLOW >> {log}\nexec {binaries15.folder}/{name} "$@"\n'
        )
        program.chmod(program.stat().st_mode | stat.S_IXUSR)

    result = planned(shop15, "", "--programs", folder, on=postgres16)

    assert result.exit_code == 0, result.output
    seen = log.read_text()
    assert {"pg_dump", "pg_restore", "psql"} <= {Path(line.split()[0]).name for line in seen.splitlines()}
    assert shop15.server.password not in seen
    assert "AIRFLOW" not in seen


@pytest.mark.slow
def test_a_job_that_is_cancelled_leaves_no_server(
    shop15: Database, lead: Callable[..., None], pipeline_file: Callable[..., Path], tmp_path: Path
) -> None:
    lead("penstock_source", shop15)
    file, home = tmp_path / "sleeps.sql", tmp_path / "tmp"
    file.write_text("select pg_sleep(300)")
    home.mkdir()
    tmp_path.chmod(0o755)
    command = [sys.executable, "-m", "penstock.cli", "plan-migration", str(pipeline_file()), str(file)]
    job = subprocess.Popen(
        command, cwd=ROOT, env={**os.environ, "PYTHONPATH": f"{ROOT}/plugins"}, stderr=subprocess.PIPE, text=True
    )
    assert job.stderr is not None
    before = next(line for line in job.stderr if line.startswith("running"))
    servers = psutil.Process(job.pid).children(recursive=True)
    job.terminate()
    job.wait(60)

    assert before
    assert job.returncode == 128 + 15
    wait_until(lambda: not any(each.is_running() for each in servers))


def test_a_role_that_may_create_databases_is_enough_on_a_server_that_is_named(
    planned: Plan, shop15: Database, postgres16: Server, lead: Callable[..., None]
) -> None:
    role, home = f"maker_{shop15.name}", Database(postgres16, "postgres")
    home.execute(f"create role {role} login createdb password 'only'")
    try:
        lead("penstock_maker", home, login=role, password="only")
        result = planned(shop15, "alter table orders alter total type text", "--scratch-connection", "penstock_maker")
        left = home.execute("select datname from pg_database where datname ~ 'penstock_trial'")
    finally:
        home.execute(f"drop role {role}")

    assert (result.exit_code, left) == (1, []), result.output
    assert "COPIES  public.orders" in result.stdout

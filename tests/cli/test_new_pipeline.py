"""`penstock init` writes a file that validates, from what a real server has, and never touches one that is there."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from penstock.cli.app import app
from penstock.cli.options import Status
from penstock.config.model import load_pipeline
from stack.servers.postgres import Database
from tests.pipeline_env import ROOT, airflow_connection

SHOP = """
create table customer (id int primary key, name text);
create table "odd.name" (id int primary key);
create table keyless (id int);
alter table keyless replica identity full;
create schema "Sales Dept";
create table "Sales Dept".orders (id int primary key);
insert into customer select n, 'c' from generate_series(1, 1000) n;
analyze;
"""
Init = Callable[..., Result]


@pytest.fixture
def init(database16: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Init:
    """Run `penstock init` with a connection to a database of the test's own, and a folder of its own."""
    for name in [name for name in os.environ if name.startswith("AIRFLOW_CONN_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AIRFLOW_CONN_SHOP_DB", airflow_connection(database16))
    monkeypatch.setenv("PENSTOCK_PIPELINES", str(tmp_path / "pipelines"))
    monkeypatch.setenv("PENSTOCK_HOME", str(ROOT))

    def run(*words: str) -> Result:
        return CliRunner().invoke(app, ["init", *words, "--connection", "shop_db"], env={"COLUMNS": "300"})

    return run


def test_a_source_becomes_a_pipeline_file_with_its_tables_and_the_next_step(
    init: Init, database16: Database, tmp_path: Path
) -> None:
    database16.execute(SHOP)
    file = tmp_path / "pipelines" / "shop.yaml"

    done = init("shop")

    assert done.exit_code == Status.DONE, done.output
    assert f"{file}: written, 4 tables" in done.stdout
    assert "penstock bootstrap shop" in done.stdout
    assert "penstock start shop" in done.stdout
    written = file.read_text()
    assert "#   public.customer, " in written
    assert "#   public.odd.name, " in written
    assert "#   warn: max_slot_wal_keep_size: expected a limit" in written
    assert "#     next: set it well below" in written
    pipeline = load_pipeline(file, {"PENSTOCK_HOME": str(ROOT)})
    assert (pipeline.name, pipeline.source.connection) == ("shop", "shop_db")
    assert pipeline.tables.include == ["Sales Dept.*", "public.*"]
    header = written.partition("\n")[0].partition("=")[2]
    assert (file.parent / header).resolve() == ROOT / "include" / "pipeline.schema.json"
    assert CliRunner().invoke(app, ["validate"]).exit_code == Status.DONE


@pytest.mark.slow
def test_only_the_tables_that_are_wanted_are_taken_and_json_lists_them(init: Init, database16: Database) -> None:
    database16.execute(SHOP)

    done = init("shop", "--include", "public.c*", "--json")

    assert done.exit_code == Status.DONE, done.output
    assert json.loads(done.stdout)["tables"] == ["public.customer"]


def test_a_file_that_is_there_is_never_overwritten(init: Init, database16: Database, tmp_path: Path) -> None:
    database16.execute(SHOP)
    file = tmp_path / "pipelines" / "mine.yaml"
    file.parent.mkdir()
    for text in ("name: shop\ntables: {include: [a.*]}\n", "half a fi"):
        file.write_text(text)
        done = init("mine")
        assert (done.exit_code, file.read_text()) == (Status.REFUSED, text)
        assert f"{file} is the pipeline mine; edit that file, or choose another name" in done.stderr

    file.write_text("name: shop\ntables: {include: [a.*]}\n")
    done = init("shop")
    assert (done.exit_code, list(file.parent.iterdir())) == (Status.REFUSED, [file])
    assert f"{file} is the pipeline shop" in done.stderr


@pytest.mark.slow
def test_what_stands_in_the_way_is_said_and_nothing_is_written(
    init: Init, database16: Database, tmp_path: Path
) -> None:
    nothing = init("shop")
    name = init("My Shop")
    pattern = init("shop", "--include", "orders")
    absent = CliRunner().invoke(app, ["init", "shop", "--connection", "no_such_db"])

    assert {each.exit_code for each in (nothing, name, pattern, absent)} == {Status.REFUSED}
    assert "expected shop" not in nothing.stderr
    assert "to have tables" in nothing.stderr
    assert "expected a name of a-z" in name.stderr
    assert "expected patterns schema.table, got orders" in pattern.stderr
    assert "AIRFLOW_CONN_NO_SUCH_DB" in absent.stderr
    assert not (tmp_path / "pipelines").exists()


@pytest.mark.slow
def test_what_check_finds_is_in_the_file_and_the_next_step_is_to_mend_it(
    init: Init, database16: Database, tmp_path: Path
) -> None:
    database16.execute("create table keyless (id int)")

    done = init("shop")

    assert done.exit_code == Status.FOUND, done.output
    assert "Next: 1 finding forbids a bootstrap" in done.stdout
    assert "# What `penstock check shop` said on that day:" in (tmp_path / "pipelines" / "shop.yaml").read_text()

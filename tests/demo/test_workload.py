"""The load starts, stops between transactions, continues where it was, and says so when it can't."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from random import Random

import psycopg
import pytest

from demo import source, transactions
from demo.workload import Totals, Workload
from stack.paths import Project
from stack.servers.postgres import Database, Server
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def postgres(postgres16: Server) -> Server:
    """One server is enough here: nothing of the load depends on its version."""
    return postgres16


def sessions(shop: Database) -> int:
    with shop.server.connect() as connection:
        query = "select count(*) from pg_stat_activity where datname = %s and backend_type = 'client backend'"
        return connection.execute(query, (shop.name,)).fetchone()[0]


def pgbench_of(shop: Database) -> Path:
    return shop.server.binaries.program("pgbench")


@pytest.mark.slow
def test_a_stopped_load_leaves_no_session_and_every_transaction_that_it_counted(shop: Database, address):
    load = Workload(address, rate=50, pgbench=pgbench_of(shop))
    load.start()
    wait_until(lambda: load.so_far().committed["pgbench"] > 0 and load.so_far().committed["click"] > 0)
    totals = load.stop()

    assert sessions(shop) == 0
    # pgbench empties its history when a load begins, and each of its transactions writes one row of it
    assert shop.execute("select count(*) from public.pgbench_history") == [(totals.committed["pgbench"],)]


def test_a_load_continues_where_an_earlier_one_stood(shop: Database, address):
    for _ in range(2):
        before = shop.execute("select max(id) from shop.orders")[0][0]
        load = Workload(address, rate=50)
        load.start()
        wait_until(lambda load=load: load.so_far().committed["place_order"] > 3)
        totals = load.stop()
        assert shop.execute("select max(id) from shop.orders")[0][0] >= before + totals.committed["place_order"]


def test_the_load_empties_no_table_before_the_first_cut(shop: Database):
    class Certain(Random):
        def random(self) -> float:
            return 0.0

    def loaded() -> int:
        before = shop.execute("select max(id) from shop.import_batches")[0][0]
        with shop.connect() as connection, connection.transaction():
            transactions.import_file(connection, Certain(1))
        return shop.execute("select max(id) from shop.import_batches")[0][0] - before

    source.create(shop, scale=1)
    assert loaded() == 2, "a TRUNCATE would void the first copy"
    source.sell_gift_cards(shop)
    loaded()
    assert shop.execute("select min(id), max(id) from shop.import_batches") == [(1, 1)], "emptied halfway, too"


def test_the_same_seed_makes_the_same_rows(shop: Database):
    def rows(seed: int) -> list[tuple[str]]:
        source.create(shop, scale=1)
        dice = Random(seed)
        with shop.connect() as connection:
            connection.execute("select setseed(%s)", (dice.random(),))
            for work in dice.choices(list(transactions.MIX), k=60):
                with connection.transaction():
                    work(connection, dice)
        tables = ("products", "ranking", "coupons", "contracts", "long_links", "every_type")
        return [row for table in tables for row in shop.execute(f"select t::text from shop.{table} t order by 1")]

    assert rows(1) == rows(1)
    assert rows(1) != rows(2)


def test_a_writer_that_fails_ends_the_load_with_its_error(shop: Database, address):
    load = Workload(address, rate=100)
    load.start()
    shop.execute("alter table shop.orders rename to elsewhere")
    try:
        wait_until(lambda: not load.wait(0.1))
        with pytest.raises(psycopg.errors.UndefinedTable):
            load.stop()
    finally:
        shop.execute("alter table shop.elsewhere rename to orders")
    assert sessions(shop) == 0


def test_pgbench_that_fails_ends_the_load_with_what_it_said(shop: Database, address):
    shop.execute("alter table public.pgbench_branches rename to elsewhere")
    load = Workload(address, rate=10, pgbench=pgbench_of(shop))
    load.start()
    try:
        wait_until(lambda: not load.wait(0.1))
        with pytest.raises(RuntimeError, match="pgbench_branches"):
            load.stop()
    finally:
        shop.execute("alter table public.elsewhere rename to pgbench_branches")


def test_totals_survive_the_way_through_a_file(tmp_path: Path):
    totals = Totals(seconds=1.5)
    totals.committed["click"] += 2
    totals.refused["DeadlockDetected"] += 1

    totals.write(tmp_path / "totals.json")

    assert Totals.read(tmp_path / "totals.json") == totals
    assert Totals.read(tmp_path / "nothing.json") == Totals()


@pytest.fixture
def process(shop: Database, address, tmp_path: Path):
    """A load in a process of its own, as the demo starts it, and the file of its totals."""
    report = tmp_path / "totals.json"
    command = [sys.executable, "-m", "demo.workload", "--report", report, "--pgbench", pgbench_of(shop)]
    with subprocess.Popen(command, env=os.environ | address, cwd=Project.here().root) as process:
        wait_until(lambda: process.poll() is not None or Totals.read(report).committed["pgbench"] > 0)
        assert process.poll() is None
        yield process, report
        process.kill()


@pytest.mark.parametrize("which", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)])
def test_a_process_that_is_asked_to_stop_finishes_and_reports(shop: Database, process, which):
    running, report = process

    running.send_signal(which)

    assert running.wait() == 0
    assert sessions(shop) == 0
    reported = json.loads(report.read_text())
    assert shop.execute("select count(*) from public.pgbench_history") == [(reported["committed"]["pgbench"],)]


def test_the_source_can_be_created_again_under_a_load_that_was_not_stopped(shop: Database, process):
    running, _ = process
    running.kill()
    running.wait()

    size = source.create(shop, scale=1)

    assert size.rows > 100_000

"""`python -m demo.first_hour`: do what docs/getting-started.md says, literally, as a stranger on a busy machine would.

A fresh clone with an empty HOME and a database of one's own; every `sh` block of the page is typed into one shell, in order, beside two
busy loops. It ends with one query that three readers answer alike, and says how long each step took.
"""

import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
from rich.console import Console

from stack import ports
from stack.errors import StackError
from stack.paths import Project
from stack.servers.binaries import from_wheel
from stack.servers.postgres import Server

PAGE = "docs/getting-started.md"
SKIPPED_SECTIONS = ("7. When it halts", "In containers")
SKIPPED_BEFORE = "**Without Airflow**"
BUSY_LOOPS = 2
PASSWORD = "first-hour"  # noqa: S105
OWN_DATABASE = """
create schema sales;
create table sales.customer (id bigint generated always as identity primary key, name text not null, since date);
create table sales."order" (id bigint generated always as identity primary key, customer_id bigint not null references sales.customer);
create table sales.order_line (order_id bigint references sales."order", line_no int, amount numeric(12, 2), primary key (order_id, line_no));
insert into sales.customer (name, since) select 'customer ' || n, date '2020-01-01' + n % 2000 from generate_series(1, 20000) n;
insert into sales."order" (customer_id) select 1 + n % 20000 from generate_series(1, 50000) n;
insert into sales.order_line select n, 1, n / 7.0 from generate_series(1, 50000) n;
create role penstock_capture login replication password '{password}';
create role penstock_reader login password '{password}';
grant pg_monitor to penstock_capture;
grant usage on schema sales to penstock_reader;
grant select on all tables in schema sales to penstock_reader;
create publication penstock_sales for table sales.customer, sales."order", sales.order_line with (publish_via_partition_root = true);
delete from sales.customer where id = 7 and not exists (select from sales."order" where customer_id = 7);
"""
"""The reader's own database, as docs/postgresql.md says."""
UNTIL_CUT = """until { penstock status sales --json || true; } | python -c 'import json, sys; sys.exit(json.load(sys.stdin).get("last_cut") is None)'; do sleep 5; done
"""
ALARM_IS_NO_END = (
    """penstock() { local end=0; command penstock "$@" || end=$?; test "$1 $end" = "status 4" || return $end; }"""
)
READERS = ("PyIceberg", "DuckDB", "Spark")


@dataclass(frozen=True)
class Block:
    """Hold what the page says to type, the section that it stands in, and the line before it."""

    section: str
    before: str
    text: str


def blocks(page: str) -> list[Block]:
    """Return the `sh` blocks of a page, in order. Pure."""
    found, section, before, text = list[Block](), "", "", None
    for line in page.splitlines():
        if text is not None:
            if line == "```":
                found.append(Block(section, before, text))
                text = None
            else:
                text += f"{line}\n"
        elif line == "```sh":
            text = ""
        elif line.startswith("#"):
            section = line.lstrip("# ")
        elif line:
            before = line
    return found


def script(typed: list[Block], own: dict[str, str], answers: Path) -> str:
    """Return what a shell is to run: the blocks with the reader's own address, each timed, and the three queries at the end. Pure."""
    lines = ["set -euo pipefail", ALARM_IS_NO_END]
    for number, block in enumerate(typed, 1):
        title = f"{number}. {block.section}: {block.text.splitlines()[0][:60]}"
        lines += [
            f"echo; echo {shlex.quote(f'=== {title}')}; SECONDS=0",
            _with(block.text, own),
            'echo "    took $SECONDS s"',
        ]
        if block.section.startswith("5. "):
            lines += [UNTIL_CUT, 'echo "    first cut after $SECONDS s"']
        if block.section.startswith("6. "):
            lines += _queries(typed, answers)
    return "\n".join(lines)


def _queries(typed: list[Block], answers: Path) -> list[str]:
    """Ask the three readers for the reader's own table, as the page does for the demo's."""
    asked = [block for block in typed if "shop.shop.orders" in block.text]
    if len(asked) != len(READERS):
        raise StackError(f"{len(READERS)} queries of shop.shop.orders in {PAGE}", str(len(asked)), "mend the page")
    own = [block.text.replace("shop.shop.orders", "sales.sales.customer") for block in asked]
    return [
        f"{{ {text.rstrip()}\n}} | tee {shlex.quote(str(answers / reader))}"
        for reader, text in zip(READERS, own, strict=True)
    ]


def _with(text: str, own: dict[str, str]) -> str:
    for placeholder, value in own.items():
        text = text.replace(placeholder, value)
    return text


@contextmanager
def own_database(folder: Path) -> Iterator[Server]:
    """Lend a server with the reader's own tables."""
    project = Project.here()
    folder.chmod(0o711)  # the account that PostgreSQL runs as goes through it
    binaries = from_wheel(project.servers)
    server = Server(folder / "own", binaries, ports.choose(5450), PASSWORD, {"max_slot_wal_keep_size": "1GB"})
    server.init()
    server.start()
    try:
        with psycopg.connect(server.dsn(), autocommit=True) as connection:
            connection.execute("create database shop")
        with psycopg.connect(server.dsn("shop"), autocommit=True) as connection:
            connection.execute(OWN_DATABASE.format(password=PASSWORD))
        yield server
    finally:
        server.stop()


@contextmanager
def busy() -> Iterator[None]:
    """Keep as many processes busy as the smallest supported machine has cores."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(BUSY_LOOPS)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def main() -> int:
    """Follow the page and return an exit status."""
    began, console = time.monotonic(), Console(highlight=False, soft_wrap=True)
    with ExitStack() as stack:
        folder = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="penstock-first-hour-", ignore_cleanup_errors=True))
        )
        clone, home, answers = folder / "penstock", folder / "home", folder / "answers"
        for made in (home, answers):
            made.mkdir()
        subprocess.run(["git", "clone", "--quiet", str(Project.here().root), str(clone)], check=True)
        server = stack.enter_context(own_database(folder))
        stack.enter_context(busy())
        page = (clone / PAGE).read_text(encoding="utf-8")
        typed = [
            each
            for each in blocks(page)
            if each.section not in SKIPPED_SECTIONS and not each.before.startswith(SKIPPED_BEFORE)
        ]
        own = {
            "db.example.com": "127.0.0.1",
            '"port": 5432': f'"port": {server.port}',
            '"password": "..."': f'"password": "{PASSWORD}"',
        }
        environ = {"HOME": str(home), "PATH": os.environ.get("SYSTEM_PATH", os.defpath), "LANG": "C.UTF-8"}
        try:
            done = subprocess.run(["bash", "-c", script(typed, own, answers)], cwd=clone, env=environ, check=False)
        finally:  # whatever ended it: nothing of the clone's keeps running
            subprocess.run(["make", "down"], cwd=clone, env=environ, check=False)
        if done.returncode:
            console.print(f"\nThe page led to exit status {done.returncode}.", style="red")
            return 1
        said = {reader: (answers / reader).read_text().splitlines()[-1] for reader in READERS}
    minutes, seconds = divmod(round(time.monotonic() - began), 60)
    console.print(
        f"\n{len(typed)} blocks typed, {minutes} min {seconds} s beside {BUSY_LOOPS} busy loops; the readers say {said}"
    )
    return 0 if len(set(said.values())) == 1 else 1


if __name__ == "__main__":
    raise SystemExit(main())

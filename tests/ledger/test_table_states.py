"""A table's state is written by the statements of `MOVES` alone, and each does what it says there: read, and run on a server."""

import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain, product
from pathlib import Path
from typing import Any, get_args

import pytest
from psycopg.errors import CheckViolation
from psycopg.types.json import Jsonb

from penstock.ledger import Ledger
from penstock.ledger.session import Transaction
from penstock.ledger.table_records import TableState
from penstock.ledger.tables import MOVES
from penstock.lsn import Lsn
from tests.ledger.conftest import START, facts, start_copy

STATEMENTS = Path(__file__).parents[2] / "include" / "sql" / "ledger"
STATES: tuple[TableState, ...] = get_args(TableState)
WRITE = re.compile(r"(?:insert into|update) penstock\.table\b")
LATER = Lsn(START + 10)
PLACES = ((None, START), (None, LATER), (START, START))
"""Through where a table is published, None where it did not leave, and how far the lake has it."""
FORGE = """
update penstock.table
set
    state = %(state)s, copy_id = 'c', complete_through = %(through)s, left_lsn = case when %(state)s in ('ready', 'paused', 'dropped') then %(left)s end::pg_lsn,
    paused_slug = case %(state)s when 'paused' then 'schema-change' end,
    remedy = case %(state)s when 'paused' then 'copy' end,
    paused_from_state = case %(state)s when 'paused' then %(before)s end
where pipeline = %(name)s and oid = 1
"""


def text(name: str) -> str:
    return re.sub(r"--.*", "", (STATEMENTS / f"{name}.sql").read_text(encoding="utf-8"))


def assigned(statement: str) -> str | None:
    """Return what a statement on tables sets `state` to, None where it leaves it alone."""
    write = WRITE.search(statement)
    found = re.search(r"(?:\bset|,)\s+state = ", statement[write.start() :]) if write else None
    if write is None or found is None:
        return None
    rest, depth = statement[write.start() + found.end() :], 0
    for word in re.finditer(r"[(),]|\bcase\b|\bend\b|\bfrom\b|\bwhere\b", rest):
        if depth == 0 and word[0] not in ("(", "case"):
            return rest[: word.start()].strip()
        depth += {"(": 1, "case": 1, ")": -1, "end": -1}.get(word[0], 0)
    return rest.strip()


def writers() -> Iterator[str]:
    for path in sorted(STATEMENTS.rglob("*.sql")):
        name = str(path.relative_to(STATEMENTS).with_suffix(""))
        if not name.startswith("migrations/") and assigned(text(name)) is not None:
            yield name


@pytest.mark.unit
def test_no_other_statement_writes_the_state_of_a_table() -> None:
    assert list(writers()) == sorted(MOVES)


def moved(transaction: Transaction, name: str, statement: str) -> dict[TableState, set[str]]:
    """Run a statement on a table in each state, one that left as well as one that did not; return where it came to."""
    row: dict[str, Any] = {"oid": 1, "copy_id": "c", "snapshot_id": 5, "schema": "shop", "name": "a"}
    row |= {"target": ["ns", "shop", "a"], "identity": "d", "columns": [], "accepted": {"shape": {}}}
    row |= dict.fromkeys(["update_missing", "delete_missing", "insert_existing", "misfits"], 0)
    values: dict[str, Any] = {"name": name, "oid": 1, "oids": [1], "copy_id": "c", "target": ["ns", "shop", "a"]}
    row |= {"slug": "foreign-commit", "reason": "x", "remedy": "resume"}
    values |= {"discard": False, "xid": 1, "joined_xid": 1}
    values |= dict.fromkeys(["lsn", "left_lsn", "joined_lsn"], LATER)
    if statement == "tables/drop_former":
        values["oid"] = 2
    found: dict[TableState, set[str]] = {state: set() for state in STATES}
    for state, before, (left, through), loads in product(STATES, STATES, PLACES, ["c", None]):
        if before in ("paused", "dropped") or (before != "ready" and (left or state != "paused")):
            continue
        with suppress(CheckViolation), transaction.connection.transaction(force_rollback=True):
            forged = {"name": name, "state": state, "before": before, "left": left, "through": through}
            transaction.connection.execute(FORGE.encode(), forged)
            transaction.change(statement, **values, tables=Jsonb([row | {"copy_id": loads}]))
            query = b"select state from penstock.table where pipeline = %s and oid = 1"
            found[state] |= set(chain(*transaction.connection.execute(query, [name])))
    return {state: others for state, to in found.items() if (others := to - {state})}


@pytest.mark.parametrize("statement", [name for name in MOVES if name != "merges/switch_tables"])  # in test_rebuilds
def test_a_statement_moves_a_table_as_the_code_says(ledger: Ledger, running: str, statement: str) -> None:
    ledger.tables.save(running, [facts(1, "a")])
    start_copy(ledger, running, 1)

    with ledger.transaction() as transaction:
        said = {state: set(to) - {state} for state, to in MOVES[statement].items()}
        assert moved(transaction, running, statement) == {state: to for state, to in said.items() if to}

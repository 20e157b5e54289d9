"""A window asks the ledger for all tables twice: once at the look at the catalog, and once before it is staged."""

from collections import Counter
from typing import Any

import psycopg
import pytest

from penstock import sql
from tests.pipeline_env import PipelineEnv

CHANGES = {
    "rows": "insert into t values (2)",
    "a new column": "alter table t add b int; insert into t values (2, 2)",
}
ALL_TABLES, PIPELINE = "ledger/tables/tables", "ledger/pipelines/pipelines"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each statement reaches the ledger's server, by its name."""
    counted, names = Counter[str](), dict[bytes, str]()
    load, execute = sql.load, psycopg.Cursor.execute

    def loading(name: str) -> str:
        names[load(name).encode()] = name
        return load(name)

    def executing(self: psycopg.Cursor[Any], query: Any, *values: Any, **options: Any) -> Any:
        counted.update([names[query]] if isinstance(query, bytes) and query in names else [])
        return execute(self, query, *values, **options)

    monkeypatch.setattr(sql, "load", loading)
    monkeypatch.setattr(psycopg.Cursor, "execute", executing)
    return counted


@pytest.mark.parametrize("change", CHANGES)
def test_a_window_reads_all_tables_of_the_ledger_twice(env16: PipelineEnv, asked: Counter[str], change: str) -> None:
    env16.begin("create table t (id int primary key); insert into t values (1)")
    env16.capture()
    env16.flush(CHANGES[change])
    asked.clear()

    report = env16.capture()

    assert (len(report.windows), report.changes) == (1, 1)
    assert asked[ALL_TABLES] == 2
    assert asked["ledger/loads/loads"] == 1, "what is built, at the look"


def test_a_table_that_joined_is_read_once_more(env16: PipelineEnv, asked: Counter[str]) -> None:
    env16.begin("create table t (id int primary key)")
    env16.capture()
    asked.clear()

    env16.land("create table u (id int primary key); insert into t values (1)")

    assert asked[ALL_TABLES] == 3
    assert [record.name for record in env16.ctx.ledger.tables.all(env16.name)] == ["t", "u"]

"""The comparison of a whole pipeline: every table with its rows, columns, partitions and filters."""

from dataclasses import replace

import pytest

from penstock.errors import LedgerError
from penstock.flow.verify.compare import compare
from penstock.flow.verify.run import verify_now
from tests.pipeline_env import PipelineEnv

pytestmark = pytest.mark.spark

SHOP = """
create table customer (id int primary key, name text, born date, credit numeric(10,2), tags text[]);
create table visit (at timestamptz, page text);
alter table visit replica identity full;
create table sale (id int, day date, note text, primary key (id, day)) partition by range (day);
create table sale_old partition of sale for values from ('2020-01-01') to ('2024-01-01');
create table sale_new partition of sale for values from ('2024-01-01') to ('2030-01-01');
insert into customer select n, 'name ' || n, date '2000-01-01' + n, n / 7.0, array['a', n::text] from generate_series(1, 50) n;
insert into customer values (0, '', 'infinity', 'NaN', '{{a,b}}');
insert into visit select '2024-01-01'::timestamptz + n % 3 * interval '1 hour', 'page' from generate_series(1, 20) n;
insert into sale select n, date '2023-12-20' + n, repeat('x', n) from generate_series(1, 30) n;
"""

CHANGES = """
update customer set name = 'changed', born = '0044-03-15 BC' where id % 10 = 3;
update customer set id = 100 where id = 5;
delete from visit where ctid in (select ctid from visit limit 3);
update sale set day = day + 20 where id < 5;
delete from sale where id > 25;
insert into customer values (101, null, null, null, null);
"""


def test_a_pipeline_that_has_no_tables_yet_is_not_called_equal(env16: PipelineEnv) -> None:
    env16.prepare(SHOP)

    with pytest.raises(LedgerError, match="not-bootstrapped"):
        verify_now(env16.ctx)


def test_a_pipeline_that_has_caught_up_is_equal_and_one_that_has_not_is_reported(env16: PipelineEnv) -> None:
    env16.bootstrap(SHOP)
    env16.follow(CHANGES)

    found = compare(env16.ctx)
    assert found.equal, [line for table in found.tables for line in table.lines()]
    assert {table.name: table.source_rows for table in found.tables} == {"customer": 52, "sale": 25, "visit": 17}
    assert found.rows == 94
    assert "public.sale: equal, 25 rows in the source, 25 in the lake" in env16.lines

    written: list[str] = []

    def write_meanwhile(line: str) -> None:
        if not written:
            env16.sql("insert into visit values (now(), 'late'); insert into sale values (999, '2025-01-01', 'late')")
        written.append(line)

    moment = compare(replace(env16.ctx, progress=write_meanwhile))
    assert moment.equal, "all tables are read as of one moment"
    assert written[0].startswith("public.customer: equal")
    env16.capture()
    env16.merge()

    env16.sql("update customer set name = 'later' where id = 1; drop table visit")
    found = compare(env16.ctx)
    assert not found.equal
    by_name = {table.name: table for table in found.tables}
    assert by_name["customer"].different == 1
    assert by_name["sale"].equal
    assert list(by_name["visit"].lines()) == ["public.visit: not compared, the source does not publish it"]

    now = verify_now(env16.ctx)
    assert {each.name: each.outcome for each in now.tables} == {
        "customer": "differs",
        "sale": "equal",
        "visit": "skipped",
    }
    assert (now.differing, now.number, now.lsn) == (["public.customer"], None, None)
    assert env16.ctx.ledger.health.alarms(env16.name) == []
    assert verify_now(env16.ctx, tables=["public.sale"]).summary() == {
        "rows": 26,
        "equal": 1,
        "differs": 0,
        "skipped": 0,
        "unreadable": 0,
        "differing": [],
        "unread": [],
    }

"""What each cut did to a table, and how large that is since, as the ledger remembers it."""

from pathlib import Path

from tests.pipeline_env import PipelineEnv

SEEN = """
select t.name, c.inserts, c.updates, c.deletes, c.rows_written, c.rows_deleted, c.rows, c.files, c.bytes
from penstock.table_cut as c join penstock.table as t on t.oid = c.oid
order by c.cut, t.name
"""


def test_each_cut_counts_what_it_did_to_the_tables_that_moved_in_it(env16: PipelineEnv) -> None:
    env16.sql(
        "create table a (id int primary key, v text); insert into a select i, 'v' from generate_series(1, 9) as i"
    )
    env16.bootstrap("create table b (id int primary key)")
    env16.follow("insert into a values (10, 'new'); update a set v = 'other' where id <= 2; delete from a where id = 3")

    found = env16.ledger.execute(SEEN)

    assert [row[:7] for row in found] == [("a", 0, 0, 0, 9, 0, 9), ("b", 0, 0, 0, 0, 0, 0), ("a", 1, 2, 1, 3, 3, 9)]
    files = env16.spark.table(f"lake.{env16.name}.public.a.files").where("content = 0").collect()
    assert found[-1][7] == len(files)
    assert found[-1][8] >= sum(Path(file.file_path.removeprefix("file:")).stat().st_size for file in files)

"""A source table with the hard values, its mirror in the lake, and what a comparison of the two needs."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from penstock.compare.lake_reader import lake_reader
from penstock.compare.report import ComparedTable, TableComparison
from penstock.compare.rows import compare_table
from penstock.config.connections import Connection
from penstock.engine import casts, duck
from penstock.engine.files import Files
from penstock.engine.order import Resources
from penstock.lake.ddl import identifier
from penstock.source.text_rows import rendered, rendered_rows
from penstock.values.lake_types import MISFITS_COLUMN, lake_type_of
from stack.servers.postgres import Server
from tests.conftest import LakeCatalog
from tests.source.conftest import connection_to
from tests.values.conftest import Source, pinned

ORDERS = """
create type mood as enum ('fine', 'so, so');
create table pristine (
  id int, part text,
  "Flag" bool, small int2, large int8, ratio float4, exact float8, price numeric(10,2), free numeric,
  tiny numeric(12,10), born date, made timestamp, seen timestamptz, raw bytea, note text, padded char(5), mood mood,
  span interval, doc jsonb, many int[], names text[], times timestamp[], bytes bytea[], ratios float4[],
  prices numeric(10,2)[], "odd `""name.x" text,
  primary key (id, part)
);
insert into pristine values
  (1, 'a', true, -32768, 9223372036854775807, 0.1, 0.30000000000000004, 1.50, 1.500, 0.0000000001, '2024-02-29',
   '2024-02-29 12:00:00.5', '2024-02-29 12:00:00+00', '\\x00ff', 'plain', 'ab', 'fine', '1 day', '{"b": [1, null]}',
   '{1,NULL,3}', '{a,NULL,"NULL","","x y","q\\"\\\\"}', '{"2024-02-29 00:00:00",NULL}', '{"\\\\x00ff",NULL}',
   '{0,NaN,1e10,NULL}', '{1.5,NULL}', 'x'),
  (1, 'b', false, 0, 0, -0.0::float4, '-0', -0.01, 'NaN', 0, '0001-01-01', '0001-01-01 00:00:00',
   '0001-01-01 00:00:00+00', '', '', '', 'so, so', '-1 mon', 'null', '{}', '{}', '{}', '{}', '{}', '{}', ''),
  (2, 'a', null, null, null, 'NaN', '-Infinity', null, null, null, null, null, null, null, null, null, null, null, null,
   null, null, null, null, null, null, null),
  (3, '', true, 1, 1, 3.4028235e38, 1e23, 99999999.99, 1e40, -99.9999999999, '9999-12-31',
   '9999-12-31 23:59:59.999999', '9999-12-31 23:59:59.999999+00', '\\x5c', E'line\nbreak, "quoted" \\\\ \t ü', 'abcde',
   'fine', '00:00:00.000001', '"x"', '{-1}', '{"{}",ü}', null, null, '{-0,16777216,1e-45}', '{}', null),
  (4, 'misfits', true, 1, 1, 1, 1, 'NaN', 'Infinity', 'NaN', 'infinity', '0044-03-15 00:00:00 BC', '-infinity', null, null,
   null, null, null, null, '{{1,2},{3,4}}', '[0:1]={a,b}', '{infinity}', null, null, '{NaN}', null);
"""


@dataclass(frozen=True)
class Bench:
    """One source database, the lake's catalog, and Spark to write the lake."""

    source: Source
    connection: Connection
    spark: SparkSession
    folder: Path
    catalog: str
    lake: Connection

    def execute(self, statement: str, *parameters: object) -> None:
        self.source.execute(statement, *parameters)

    def mirror(self, table: str, target: tuple[str, ...], key: Sequence[str]) -> ComparedTable:
        """Write a source table's rows into a lake table, cast as the pipeline does."""
        names = self.columns(table)
        quoted = ", ".join('"' + name.replace('"', '""') + '"' for name in names)
        rows = self.source.texts(f"select {quoted} from {table}")
        types = [lake_type_of(self.source.describe(oid, typmod)) for oid, typmod in self.types(table)]
        texts = pa.table({f"x{n}": pa.array([row[n] for row in rows], pa.string()) for n in range(len(names))})
        cast = ", ".join(f"{casts.cast_to(f'x{n}', type_)} as c{n}" for n, type_ in enumerate(types))
        checked = [(name, f"x{n}", f"c{n}", types[n]) for n, name in enumerate(names)]
        values = ", ".join(f"c{n}" for n in range(len(names)))
        with duck.connect(Resources(), Files()) as db:
            db.connection.register("texts", texts)
            made = f"select {values}, {casts.misfits(checked)} as misfits from (select *, {cast} from texts)"
            mirrored = db.connection.sql(made).to_arrow_table().rename_columns([*names, MISFITS_COLUMN])
        self.spark.sql(f"create namespace if not exists {self.path(target[:-1])}")
        file = self.folder / f"{table}.parquet"
        pq.write_table(mirrored, file)
        frame = self.spark.read.parquet(file.as_uri())
        writer = frame.writeTo(self.path(target)).using("iceberg")
        for name in ("write.delete.mode", "write.update.mode"):
            writer = writer.tableProperty(name, "merge-on-read")
        writer.tableProperty("format-version", "3").createOrReplace()
        return ComparedTable("public", table, target, tuple(names), frozenset(key))

    def columns(self, table: str) -> list[str]:
        return [name for name, _, _ in self._attributes(table)]

    def types(self, table: str) -> list[tuple[int, int]]:
        return [(oid, typmod) for _, oid, typmod in self._attributes(table)]

    def _attributes(self, table: str) -> list[tuple[str, int, int]]:
        query = """
            select attname, atttypid::int, atttypmod from pg_attribute
            where attrelid = %s::regclass and attnum > 0 and not attisdropped order by attnum
        """
        return self.source.execute(query, table).fetchall()

    def path(self, target: tuple[str, ...]) -> str:
        return ".".join(map(identifier, (self.catalog, *target)))

    def compare(self, table: ComparedTable, snapshot: int | None = None) -> TableComparison:
        """Compare a table with the lake's current, or the named, snapshot."""
        with (
            rendered(self.connection, seconds=60) as texts,
            lake_reader(self.catalog, self.lake) as lake,
        ):
            return compare_table(
                table,
                lambda table, columns: rendered_rows(texts, table.relations, columns, table.where, table.part),
                lake.table(table.target, snapshot),
            )


@pytest.fixture(scope="module")
def bench(
    postgres16: Server, spark: SparkSession, lake: LakeCatalog, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Bench]:
    with postgres16.temporary_database("compared") as database, database.connect() as connection:
        source = pinned(connection)
        yield Bench(
            source,
            connection_to(database),
            spark,
            tmp_path_factory.mktemp("mirrors"),
            lake.name,
            connection_to(lake.database),
        )


@pytest.fixture(scope="module")
def mirrored(bench: Bench) -> ComparedTable:
    """The table `pristine` and its mirror, which no test changes."""
    bench.execute(ORDERS)
    return bench.mirror("pristine", ("compare", "orders"), ("id", "part"))


@pytest.fixture
def damaged(bench: Bench, mirrored: ComparedTable) -> Callable[[str], TableComparison]:
    """Change a copy of the source table by a statement on `orders`, and compare that with the mirror."""
    bench.execute("drop table if exists orders; create table orders (like pristine including all)")
    bench.execute("insert into orders select * from pristine")

    def compare(statement: str) -> TableComparison:
        bench.execute(statement)
        return bench.compare(replace(mirrored, name="orders"))

    return compare

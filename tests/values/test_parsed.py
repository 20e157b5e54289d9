"""What Arrow makes of the server's texts is what Spark's casts make of them, or nothing at all."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from penstock.contract.schema import copy_schema
from penstock.values.casts import cast_sql, cast_to
from penstock.values.parsed import parse, parsed_type
from tests.values.conftest import Source
from tests.values.test_casts import cases, rendered, shop

pytestmark = pytest.mark.spark
__all__ = ["shop"]

PARSED = {
    "boolean",
    "int",
    "bigint",
    "float",
    "double",
    "date",
    "timestamp",
    "timestamp_ntz",
    "array<int>",
    "array<bigint>",
}


def test_types_are_parsed_by_their_lake_type_and_all_others_stay_texts(shop: Source) -> None:
    for case in cases(shop):
        parsed = case.lake in PARSED or case.lake.startswith("decimal(")
        assert parsed_type(shop.type(case.type)) == (case.lake if parsed else None), case


def test_parsed_values_are_those_of_sparks_casts(shop: Source, spark: SparkSession, tmp_path) -> None:
    chosen = [case for case in cases(shop) if parsed_type(shop.type(case.type))]
    for case in chosen:
        texts = pa.array([*rendered(shop, case.type, case.fits), None, *rendered(shop, case.type, case.fits)])
        schema = copy_schema(["value", "text"], {"value": case.lake})
        pq.write_table(
            pa.table([parse(texts, case.lake), texts], names=schema.names).cast(schema), tmp_path / "copied.parquet"
        )

        copied = spark.read.parquet(str(tmp_path / "copied.parquet"))
        different = copied.where(f"not (value <=> {cast_sql('text', shop.type(case.type))})")

        assert dict(copied.dtypes)["value"] == case.lake
        assert different.collect() == [], case
        assert copied.where("value is null").count() == 1, case


def test_what_the_server_renders_and_spark_does_not_cast_is_not_parsed_either(shop: Source) -> None:
    chosen = [case for case in cases(shop) if case.misfits and parsed_type(shop.type(case.type))]
    for case in chosen:
        for text in rendered(shop, case.type, case.misfits):
            with pytest.raises(pa.ArrowInvalid):
                parse(pa.array([text]), case.lake)
    assert {case.lake for case in chosen} >= {"date", "timestamp", "timestamp_ntz", "array<int>"}


def test_random_values_of_the_server_are_parsed_as_they_are_cast(
    source16: Source, spark: SparkSession, tmp_path
) -> None:
    source16.execute("select setseed(0.25)")
    names = {
        "bigint": "((random() - 0.5) * 2e18)::int8",
        "double": "(random() - 0.5) * power(10::float8, (random() * 600 - 300)::int)",
        "float": "((random() - 0.5) * power(10::float8, (random() * 60 - 30)::int))::float4",
        "decimal(18,6)": "((random() - 0.5) * 1e12)::numeric(18,6)",
        "date": "date '0001-01-01' + (random() * 3652058)::int",
        "timestamp_ntz": "timestamp '0001-01-01' + random() * interval '3652058 days'",
        "timestamp": "timestamptz '0001-01-01 00:00:00+00' + random() * interval '3652058 days'",
        "array<int>": "case when random() < 0.1 then '{}' else array[(random() * 1e9)::int, null, -(random() * 9)::int] end",
    }
    selected = ", ".join(names.values())
    rows = source16.texts(f"select {selected} from generate_series(1, 3000)")
    columns = dict(zip(names, zip(*rows, strict=True), strict=True))
    schema = copy_schema([f"v{n}" for n in range(len(names))], {f"v{n}": type for n, type in enumerate(names)})
    values = [parse(pa.array(texts), type) for type, texts in columns.items()]
    parsed = dict(zip(schema.names, values, strict=True))
    texts = {f"t{n}": pa.array(texts) for n, texts in enumerate(columns.values())}
    pq.write_table(pa.table({**parsed, **texts}), tmp_path / "copied.parquet")

    copied = spark.read.parquet(str(tmp_path / "copied.parquet"))

    for n, type in enumerate(names):
        assert copied.where(f"not (v{n} <=> {cast_to(f't{n}', type)})").count() == 0, type
        assert copied.where(f"v{n} is null").count() == 0, type

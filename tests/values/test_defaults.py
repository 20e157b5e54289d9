"""The defaults of added columns, as the server shows them in old rows."""

import json
from pathlib import Path

import pytest
from pyiceberg.conversions import to_json
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    PrimitiveType,
    StringType,
    TimestampType,
    TimestamptzType,
)

from penstock.engine import casts, duck
from penstock.engine.duck import duck_type
from penstock.engine.files import Files
from penstock.engine.order import Resources
from penstock.values.defaults import Unsupported, default_literal, shown_text
from penstock.values.lake_types import decimal_digits, lake_type_of
from tests.values.cases import CASES, SETUP
from tests.values.conftest import Source
from tests.values.rendering import as_stored, same

ICEBERG: dict[str, PrimitiveType] = {
    "boolean": BooleanType(),
    "int": IntegerType(),
    "bigint": LongType(),
    "float": FloatType(),
    "double": DoubleType(),
    "date": DateType(),
    "timestamp_ntz": TimestampType(),
    "timestamp": TimestamptzType(),
    "binary": BinaryType(),
    "string": StringType(),
}

NO_JSON = {"NaN", "Infinity", "-Infinity"}


def shown(source: Source, type: str, default: str) -> str:
    """Return what a row shows that was there before the column came with its default."""
    source.execute("drop table if exists old; create table old as select")
    source.execute(f"alter table old add column x {type} default '{default.replace(chr(39), chr(39) * 2)}'")
    ((text,),) = source.texts("select x from old")
    assert text is not None
    return text


def test_a_default_is_read_as_the_value_that_old_rows_show(source16: Source) -> None:
    source16.execute(SETUP)
    chosen = [case for case in CASES if case.type != "xml"]
    read = 0
    for case in chosen:
        type = source16.type(case.type)
        for literal in (each for each in case.fits if len(each) < 1000):
            text = shown(source16, case.type, literal)
            value = default_literal(type, text)
            if isinstance(value, Unsupported):
                assert case.lake.startswith(("array", "map")) or text in NO_JSON, (case, literal)
            elif case.lake == "string":
                assert value == text
            else:
                own = as_stored(source16.decoded(f"select cast(%s as {case.type})", literal), case)
                assert same(value, own) or case.lake == "float", (case, literal)
                read += 1
    assert read > 50


def test_a_default_that_misfits_its_type_is_refused_without_showing_it(source16: Source) -> None:
    source16.execute(SETUP)
    for case in CASES:
        for literal in case.misfits if not case.lake.startswith("array") else ():
            text = shown(source16, case.type, literal)
            value = default_literal(source16.type(case.type), text)
            assert isinstance(value, Unsupported), (case, literal)
            assert text not in value.reason


@pytest.mark.parametrize("type", ["int4[]", "text[]"])
def test_a_container_has_no_default_in_the_lake(source16: Source, type: str) -> None:
    described = source16.type(type)
    assert default_literal(described, "{}") == Unsupported(
        f"the lake has no default values of type {lake_type_of(described)}"
    )


def in_a_schema(value: object, lake_type: str) -> object:
    """Return what a schema's JSON has of a default, by another implementation of Iceberg than the one that writes it."""
    digits = decimal_digits(lake_type)
    type_ = DecimalType(*digits) if digits else ICEBERG[lake_type]
    return json.loads(json.dumps(to_json(type_, value)))  # type: ignore[misc]


def test_the_engine_reads_each_default_as_the_value_of_the_servers_text(source16: Source, tmp_path: Path) -> None:
    """It casts a default's form in Iceberg's schema, and a change's text: what they are must be one value."""
    source16.execute(SETUP)
    read = 0
    with duck.connect(Resources(), Files()) as db:
        db.execute(f"copy (select 1 as k) to '{tmp_path}/old.parquet' (format parquet, field_ids {{k: 1}})")
        for case in (each for each in CASES if each.type != "xml"):
            type = source16.type(case.type)
            for text in (shown(source16, case.type, each) for each in case.fits if len(each) < 1000):
                value = default_literal(type, text)
                if isinstance(value, Unsupported):
                    continue
                form = shown_text(in_a_schema(value, case.lake), case.lake)
                schema = f"{{name: 't', type: '{duck_type(case.lake)}', default_value: {duck.text(form)}}}"
                file = f"read_parquet('{tmp_path}/old.parquet', schema = map {{2: {schema}}})"
                ours = casts.distinguishable("t", case.lake)
                theirs = casts.distinguishable(casts.cast_to(duck.literal(text), case.lake), case.lake)
                (equal,) = db.row(f"select {ours} is not distinct from {theirs} from {file}")
                assert equal, (case, text)
                read += 1
    assert read > 100


def test_a_real_that_is_another_one_by_way_of_a_double_is_no_default_in_the_lake(source16: Source) -> None:
    text = shown(source16, "real", "7.038531e-26")
    assert default_literal(source16.type("real"), text) == Unsupported("the default does not fit the lake type float")

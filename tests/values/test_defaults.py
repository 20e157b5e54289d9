"""The defaults of added columns, as the server shows them in old rows."""

from __future__ import annotations

import pytest

from penstock.values.defaults import Unsupported, default_literal
from penstock.values.lake_types import mapping
from tests.values.cases import CASES, SETUP
from tests.values.conftest import Source
from tests.values.rendering import as_stored, same

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
        f"the lake has no default values of type {mapping(described).lake_type}"
    )

"""The table of types is whole: each row has its rule in every engine, its cases, and its line in the documentation."""

import re

import pyarrow as pa

from penstock.compare import pg_text
from penstock.engine import casts
from penstock.values import defaults
from penstock.values.lake_types import BY_NAME, DECIMAL, STRING, TYPES, LakeType, describe
from stack.paths import Project
from tests.values.cases import CASES

SQL_NAMES = {
    "bool": "boolean",
    "int2": "smallint",
    "int4": "integer",
    "int8": "bigint",
    "float4": "real",
    "float8": "double precision",
}
"""What people call types that the catalog calls otherwise."""


def in_full(each: LakeType) -> str:
    return "decimal(10,2)" if each.name == DECIMAL else each.name


def test_the_engine_of_merges_has_a_cast_for_each_type_and_for_no_other() -> None:
    assert {*casts.CASTS, DECIMAL} == set(BY_NAME)
    assert all(casts.cast_to("t", in_full(each)) for each in TYPES)


def test_a_default_can_be_read_of_each_type_but_a_map() -> None:
    assert set(defaults.READERS) == {each.name for each in TYPES if not each.name.startswith("map<")}


def test_the_comparison_renders_each_type_and_arrays_of_them() -> None:
    for each in TYPES:
        arrow = describe(in_full(each)).arrow
        assert pg_text.texts(pa.nulls(3, arrow)).null_count == 3, each.name
        if not each.name.startswith("map<"):
            assert pg_text.texts(pa.nulls(3, pa.list_(arrow))).null_count == 3, each.name


def test_each_type_has_cases_by_itself_and_in_arrays_and_misfits_where_it_can_have_any() -> None:
    for each in TYPES:
        if each.extensions:
            continue  # the server of the tests has none: tests/values/test_arrays.py
        own = [case for case in CASES if case.lake.partition("(")[0] == each.name]
        in_arrays = [case for case in CASES if re.sub(r"\(.*\)", "", case.lake) == f"array<{each.name}>"]
        sources = {case.type.partition("(")[0] for case in own}

        assert own, each.name
        assert in_arrays, each.name
        assert sources >= set(each.postgres)
        assert any(case.misfits for case in own) is not each.always_fits, each.name


def test_the_documentation_has_a_line_for_each_type_with_the_types_that_it_holds() -> None:
    text = (Project.here().root / "docs" / "spark-and-iceberg.md").read_text()
    rows = re.findall(
        r"^\| (.+?) \| (.+?) \| (.+?) \|$", text.partition("### Types")[2].partition("**Misfits.**")[0], re.M
    )
    lines = [(set(re.findall(r"`([^`]+)`", left)), re.findall(r"`([^`]+)`", lake), says) for left, lake, says in rows]
    bare = [([name.partition("(")[0] for name in held], lake, says) for held, lake, says in lines]

    assert {name.partition("(")[0] for _, lake, _ in bare for name in lake} == {*BY_NAME, "array"}
    for each in TYPES:
        own = [(held, says) for held, lake, says in bare if each.name in {name.partition("(")[0] for name in lake}]
        held = {name for names, _ in own for name in names}
        assert held >= {SQL_NAMES.get(name, name) for name in (*each.postgres, *each.extensions)}, each.name
        if each.name != STRING and not each.extensions:
            assert all(says.startswith("never") is each.always_fits for _, says in own), each.name

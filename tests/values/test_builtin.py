"""Built-in types are known by oid alone, as every server has them."""

from penstock.values.lake_types import SCALARS, mapping
from penstock.values.pgtype import _ARRAYS, _SCALARS, builtin
from stack.servers.postgres import Database


def test_the_oids_are_those_of_the_server(database: Database) -> None:
    rows = database.execute(
        "select oid::int, typname, typelem::int from pg_type where typnamespace = 'pg_catalog'::regnamespace"
    )
    names = {oid: name for oid, name, _ in rows}
    elements = {oid: element for oid, _, element in rows}

    for oid in _SCALARS:
        assert builtin(oid, -1).name == names[oid]
    for oid in _ARRAYS:
        found = builtin(oid, -1)
        assert found.name == names[oid]
        assert found.element is not None
        assert names[elements[oid]] == found.element.name


def test_a_type_that_is_not_known_is_kept_as_text() -> None:
    assert mapping(builtin(23, -1)).lake_type == "int"
    assert mapping(builtin(1700, (10 << 16 | 2) + 4)).lake_type == "decimal(10,2)"
    assert mapping(builtin(1007, -1)).lake_type == "array<int>"
    assert mapping(builtin(99999, -1)).lake_type == "string"


def test_every_type_that_the_lake_does_not_hold_as_text_is_known_by_its_oid() -> None:
    assert set(SCALARS) | {"numeric"} <= set(_SCALARS.values())

"""Built-in types are known by oid alone, as every server has them."""

from penstock.values.lake_types import SCALARS, lake_type_of
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
    assert lake_type_of(builtin(23, -1)) == "int"
    assert lake_type_of(builtin(1700, (10 << 16 | 2) + 4)) == "decimal(10,2)"
    assert lake_type_of(builtin(1007, -1)) == "array<int>"
    assert lake_type_of(builtin(99999, -1)) == "string"


def test_every_type_that_the_lake_does_not_hold_as_text_is_known_by_its_oid() -> None:
    assert set(SCALARS) | {"numeric"} <= set(_SCALARS.values())

"""SQL text that takes rows out of a branch: those under certain keys, or those at certain places.

Every batch is written one way: delete what it touches, append what is left of it. The delete always has a
WHEN MATCHED clause alone, so that Spark needs no row of the target, only its key, and joins by the fastest plan.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from penstock.lake.columns import MISFITS, LakeColumn
from penstock.lake.equality import comparable
from penstock.lake.quoting import identifier, literal, path

Bounds = Mapping[str, tuple[int, int]]

_ALIAS = "_penstock_target"


def key_name(position: int) -> str:
    """Name the typed value of the nth key column in a frame of keys."""
    return f"k{position}"


def key_misfit_name(position: int) -> str:
    """Name the exact text of the nth key column in a frame of keys, NULL where it fits."""
    return f"m{position}"


def key_match(keys: Sequence[LakeColumn], target: str = "t", source: str = "s") -> list[str]:
    """Return the predicates under which a row of the target has a key of the source.

    A key that cannot misfit is never NULL and matches by plain equality; one that can is NULL where it does not
    fit, and its exact text is compared too.
    """
    predicates: list[str] = []
    for position, key in enumerate(keys):
        ours = comparable(path(source, key_name(position)), key.type)
        theirs = comparable(path(target, key.name), key.type)
        if key.always_fits:
            predicates.append(f"{theirs} = {ours}")
        else:
            kept = f"{path(target, MISFITS.name)}[{literal(key.name)}]"
            predicates.append(f"{theirs} <=> {ours}")
            predicates.append(f"{kept} <=> {path(source, key_misfit_name(position))}")
    return predicates


def within(bounds: Bounds, target: str = "t") -> list[str]:
    """Return the predicates that let Iceberg leave files outside these bounds unread."""
    return [f"{path(target, name)} between {low} and {high}" for name, (low, high) in bounds.items()]


def delete_keys(table: str, source: str, keys: Sequence[LakeColumn], bounds: Bounds) -> str:
    """Return the statement that deletes the rows of `table` whose key is in the view `source`."""
    return _delete(table, source, [*key_match(keys), *within(bounds)])


def delete_places(table: str, source: str) -> str:
    """Return the statement that deletes the rows at the places (`file`, `pos`) listed in the view `source`."""
    # Spark takes `t._file` for a field of a column `t`, where the table has one: metadata columns come second
    return _delete(table, source, [f"{_ALIAS}._file = s.file", f"{_ALIAS}._pos = s.pos"], target=_ALIAS)


def _delete(table: str, source: str, predicates: Sequence[str], *, target: str = "t") -> str:
    condition = "\n  and ".join(predicates)
    return (
        f"merge into {table} as {target}\nusing {identifier(source)} as s\n  on {condition}\nwhen matched then delete"
    )

"""Between which values the keys of a batch lie, so that data files outside of them stay unread."""

from __future__ import annotations

from penstock.engine.casts import cast_to
from penstock.engine.changes import Changes
from penstock.engine.duck import Duck
from penstock.values.type_table import describe


def bounds(db: Duck, changes: Changes) -> dict[str, tuple[int, int]]:
    """Return the bounds of the key's whole numbers, old keys included, by column; none where there are no changes."""
    columns = [(i, changes.order.columns[i]) for i in changes.order.keys]
    whole = [(i, column) for i, column in columns if describe(column.lake_type).whole_number]
    if not whole:
        return {}
    both = " union all ".join(
        "select "
        + ", ".join(f"{cast_to(f'({text(i)})', column.lake_type)} as k{i}" for i, column in whole)
        + " from changes"
        for text in (changes.text, lambda i: f"o{i}")
    )
    ends = ", ".join(f"min(k{i}), max(k{i})" for i, _ in whole)
    found = db.row(f"select {ends} from ({both})")
    return {
        column.name: (low, high)
        for (_, column), low, high in zip(whole, found[::2], found[1::2], strict=True)
        if low is not None
    }

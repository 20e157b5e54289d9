"""Spark SQL expressions under which two values are equal exactly when PostgreSQL would print them alike.

Spark finds -0.0 equal to 0.0 and refuses to compare maps; both matter where rows have no key.
"""

from __future__ import annotations

import re


def comparable(expression: str, lake_type: str) -> str:
    """Return an expression that Spark can compare: a map as its sorted entries, anything else as it is."""
    return f"array_sort(map_entries({expression}))" if lake_type.startswith("map<") else expression


def distinguishable(expression: str, lake_type: str) -> str:
    """Return an expression whose equality distinguishes every two values, -0.0 from 0.0 as well."""
    if lake_type in ("float", "double"):
        return f"cast({expression} as string)"
    if re.fullmatch(r"array<(float|double)>", lake_type):
        return f"transform({expression}, e -> cast(e as string))"
    return comparable(expression, lake_type)

"""What JSON does not keep of a plan: tuples come back from it as lists."""

from __future__ import annotations

from typing import Any

Typed = tuple[tuple[str, str], ...]


def tuples(data: dict[str, Any]) -> dict[str, Any]:
    """Turn the lists of JSON into what they were."""
    typed = tuple((name, lake_type) for name, lake_type in data["typed"])
    return {**data, "columns": tuple(data["columns"]), "typed": typed}

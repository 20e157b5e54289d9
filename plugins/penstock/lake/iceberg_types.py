"""Iceberg's types, as its schemas' JSON has them, under the names that Spark SQL gives them."""

from __future__ import annotations

import re
from typing import Any

_NAMES = {
    "long": "bigint",
    "timestamptz": "timestamp",
    "timestamp": "timestamp_ntz",
    "uuid": "string",
    "time": "bigint",
}
_FIXED = re.compile(r"fixed\[\d+\]")


def lake_type(type_: Any) -> str:
    """Return the name of a type. Source: Iceberg specification, "Schemas" (JSON), and Iceberg's "Spark Type Conversion"."""
    if isinstance(type_, str):
        if _FIXED.fullmatch(type_):
            return "binary"
        return _NAMES.get(type_, type_.replace(" ", ""))
    if type_["type"] == "list":
        return f"array<{lake_type(type_['element'])}>"
    if type_["type"] == "map":
        return f"map<{lake_type(type_['key'])},{lake_type(type_['value'])}>"
    inner = ",".join(f"{field['name']}:{lake_type(field['type'])}" for field in type_["fields"])
    return f"struct<{inner}>"

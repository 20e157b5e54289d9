"""The value that old rows show in a column added later, as an Iceberg default.

PostgreSQL never resends rows when a column with a constant default is added; an Iceberg v3 initial default shows
the same value at no cost. It exists for single values only, and the spec's JSON has no NaN and no infinity. That JSON is a
form of its own, from which the engine has the values again: `shown_text`.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from penstock.values.lake_types import lake_type_of
from penstock.values.pgtype import PgType

Literal = bool | int | float | Decimal | str | bytes | date | datetime


@dataclass(frozen=True, slots=True)
class Unsupported:
    """Say why a default cannot be one of Iceberg's; the reason shows the type, never the value."""

    reason: str


def default_literal(type: PgType, missing_text: str) -> Literal | Unsupported:
    """Read PostgreSQL's text of a default as the Python value of the column's lake type.

    A timestamp comes without a zone, a timestamptz in UTC, a decimal with the column's scale.
    Source: Iceberg specification v3, "Default values".
    """
    lake_type = lake_type_of(type)
    read = READERS.get(lake_type.partition("(")[0])
    if read is None:
        return Unsupported(f"the lake has no default values of type {lake_type}")
    try:
        return read(missing_text)
    except (ValueError, KeyError):
        return Unsupported(f"the default does not fit the lake type {lake_type}")


def shown_text(value: Any, lake_type: str) -> str:
    """Return the text that DuckDB casts to a default, `value` as the JSON of Iceberg's schemas has it: bytes in hex, times with a T.

    Source: Iceberg specification, "JSON single-value serialization"; DuckDB documentation, "Blob Type".
    """
    if lake_type == "binary":
        return re.sub("..", r"\\x\g<0>", value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("expected a finite number, got an infinity or NaN instead")
    return value


def _single(text: str) -> float:
    """Return a `real`; a few texts are another one to who reads them as a double first, as Iceberg's readers do."""
    value: float = pa.scalar(_finite(text), pa.float32()).as_py()
    if value != pa.scalar(text).cast(pa.float32()).as_py():
        raise ValueError("expected a number that can be read by way of a double, got another one")
    return value


def _decimal(text: str) -> Decimal:
    value = Decimal(text) if re.fullmatch(r"-?\d+(\.\d+)?", text) else None
    if value is None:
        raise ValueError("expected a decimal number, got something else")
    return value


def _datetime(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%d %H:%M:%S.%f" if "." in text else "%Y-%m-%d %H:%M:%S")


def _utc_datetime(text: str) -> datetime:
    if not text.endswith("+00"):
        raise ValueError("expected a time in UTC, got something else")
    return _datetime(text.removesuffix("+00")).replace(tzinfo=UTC)


def _bytes(text: str) -> bytes:
    if not text.startswith("\\x"):
        raise ValueError("expected the hex form, got something else")
    return bytes.fromhex(text[2:])


READERS: dict[str, Callable[[str], Literal]] = {
    "boolean": {"t": True, "f": False}.__getitem__,
    "int": int,
    "bigint": int,
    "float": _single,
    "double": _finite,
    "decimal": _decimal,
    "date": date.fromisoformat,
    "timestamp_ntz": _datetime,
    "timestamp": _utc_datetime,
    "binary": _bytes,
    "string": str,
}

"""Amounts as people write them: sizes (`256MiB`), spans (`10m`), shares (`0.5`), and how they are shown again.

A section of the pipeline file is a model that refuses unknown keys; sizes are parsed by pydantic.
"""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import (
    BaseModel,
    BeforeValidator,
    ByteSize,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationInfo,
    field_validator,
)

_SPANS = {"d": 86400, "h": 3600, "m": 60, "s": 1}
_SPAN_NAMES = {"d": "d", "h": "h", "m": "min", "s": "s"}
_SIZE = TypeAdapter(ByteSize)


class Section(BaseModel):
    """Be one section of the pipeline file: nothing unknown, nothing changed later."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @field_validator("*", mode="before")
    @classmethod
    def _yes_is_not_one(cls, value: object, field: ValidationInfo) -> object:
        """Refuse `yes` where a number stands: pydantic would take it for 1."""
        if isinstance(value, bool) and cls.model_fields[str(field.field_name)].annotation is not bool:
            raise ValueError("expected a number or a text, got a boolean; a text is written in quotes")
        return value


def _bytes(value: object) -> object:
    if not isinstance(value, str) or not re.fullmatch(r"\s*\d+(\.\d+)?\s*([kmgtKMGT]i?)?[bB]?\s*", value):
        return value
    # as in PostgreSQL's settings: MB means powers of 1024, which pydantic knows as MiB
    return int(_SIZE.validate_python(re.sub(r"(?i)(?<=[kmgt])b", "iB", value)))


def _seconds(value: object) -> object:
    match = re.fullmatch(r"\s*(\d+)\s*([smhd])\s*", value) if isinstance(value, str) else None
    return int(match[1]) * _SPANS[match[2]] if match else value


Bytes = Annotated[int, BeforeValidator(_bytes), Field(gt=0, le=1 << 60, description="bytes, or a text such as 256MiB")]
Seconds = Annotated[
    int, BeforeValidator(_seconds), Field(gt=0, le=36500 * 86400, description="seconds, or a text such as 10m")
]
SecondsOrZero = Annotated[int, BeforeValidator(_seconds), Field(ge=0, le=36500 * 86400, description="as Seconds, or 0")]
Share = Annotated[float, Field(gt=0, le=1, description="a part of the whole, such as 0.5")]


def size(amount: float | None) -> str:
    """Return bytes as a person reads them: `1.5GiB`; `unknown` for None."""
    if amount is None:
        return "unknown"
    return "-" * (amount < 0) + ByteSize(abs(int(amount))).human_readable()


def span(seconds: float | None) -> str:
    """Return a time as a person reads it, in its two largest units: `3 h 5 min`; `unknown` for None."""
    if seconds is None:
        return "unknown"
    left, parts = max(0, round(seconds)), []
    for unit, length in _SPANS.items():
        count, left = divmod(left, length)
        if count:
            parts.append(f"{count} {_SPAN_NAMES[unit]}")
    return " ".join(parts[:2]) or "0 s"

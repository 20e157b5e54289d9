"""Amounts as people write them: sizes (`256MiB`), spans (`10m`), shares (`0.5`), and how they are shown again.

A section of the pipeline file is a model that refuses unknown keys. An amount that cannot be read is refused in words that say
what one looks like.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, get_args

from pydantic import BaseModel, ByteSize, ConfigDict, GetCoreSchemaHandler, GetJsonSchemaHandler, TypeAdapter
from pydantic_core import CoreSchema, core_schema

LOOKS = "looks"
"""The key of a JSON schema under which an annotation says what a value looks like."""
_SPANS = {"d": 86400, "h": 3600, "m": 60, "s": 1}
_SPAN_NAMES = {"d": "d", "h": "h", "m": "min", "s": "s"}
_SIZE = TypeAdapter(ByteSize)
_SIZE_TEXT = r"\s*\d{1,18}(\.\d{1,18})?\s*([kmgtKMGT]i?)?[bB]?\s*"
_SPAN_TEXT = r"\s*\d{1,18}\s*[smhd]?\s*"
_CENTURY = 36500 * 86400


class Section(BaseModel):
    """Be one section of the pipeline file: nothing unknown, nothing changed later."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


def _bytes(text: str) -> int:
    # as in PostgreSQL's settings: MB means powers of 1024, which pydantic knows as MiB
    return int(_SIZE.validate_python(re.sub(r"(?i)(?<=[kmgt])b", "iB", text)))


def _seconds(text: str) -> int:
    number, unit = re.fullmatch(r"\s*(\d+)\s*([smhd]?)\s*", text).groups()  # type: ignore[union-attr]
    return int(number) * _SPANS[unit or "s"]


@dataclass(frozen=True)
class _Unit:
    """Say which texts are an amount, how one is read, and how it is shown."""

    text: str
    read: Callable[[str], int]
    show: Callable[[float], str]


@dataclass(frozen=True)
class Number:
    """Read a number within bounds, or a text of its unit, and refuse another with words that say so. An annotation for pydantic."""

    looks: str
    least: float
    most: float
    above: bool = False
    """The least number itself is refused."""
    below: bool = False
    """The greatest number itself is refused."""
    whole: bool = False
    unit: _Unit | None = None

    def _read(self, value: object) -> float | None:
        found: float | None = None
        if isinstance(value, str) and self.unit is not None:
            return self.unit.read(value) if re.fullmatch(self.unit.text, value) else None
        if isinstance(value, str) and re.fullmatch(r"\s*[+-]?\d{1,18}(\.\d{1,18})?\s*", value):  # of a variable
            found = float(value) if "." in value else int(value)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            found = value
        return None if found is None or (self.whole and found % 1) else found

    def _check(self, value: object) -> float:
        found = self._read(value)
        if found is None:
            raise ValueError(f"expected {self.looks}")
        is_end = (self.above and found == self.least) or (self.below and found == self.most)
        if is_end or not self.least <= found <= self.most:
            raise ValueError(f"expected {self.looks}{self._bound(found, self.unit) if self.unit else ''}")
        return int(found) if self.whole else float(found)

    def _bound(self, found: float, unit: _Unit) -> str:
        """Say which bound a number breaks."""
        if found > self.most:
            return f", {unit.show(self.most)} at most"
        return (
            f", {unit.show(self.least)} at least"
            if self.least > 1
            else (", not below 0", ", more than 0")[int(self.least)]
        )

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self._check)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        least, most = "exclusiveMinimum" if self.above else "minimum", "exclusiveMaximum" if self.below else "maximum"
        number = {"type": "integer" if self.whole else "number", least: self.least, most: self.most}
        if self.unit is None:
            return {**number, LOOKS: self.looks}
        return {"anyOf": [number, {"type": "string", "pattern": f"^(?:{self.unit.text})$"}], LOOKS: self.looks}


def size(amount: float | None) -> str:
    """Return bytes as a person reads them: `1.5 GiB`; `unknown` for None."""
    if amount is None:
        return "unknown"
    return "-" * (amount < 0) + ByteSize(abs(int(amount))).human_readable(separator=" ")


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


_SIZE_UNIT = _Unit(_SIZE_TEXT, _bytes, size)
_SPAN_UNIT = _Unit(_SPAN_TEXT, _seconds, span)


def size_within(least: int = 1, most: int = 1 << 60) -> Number:
    """Return the annotation of a size within bounds."""
    looks = "a size in bytes or with a unit, such as 512KiB, 256MiB or 1.5GiB"
    return Number(looks, least, most, whole=True, unit=_SIZE_UNIT)


def span_within(least: int = 1, most: int = _CENTURY) -> Number:
    """Return the annotation of a span within bounds."""
    looks = "a span in seconds or with a unit, such as 90s, 10m, 2h or 1d"
    return Number(looks, least, most, whole=True, unit=_SPAN_UNIT)


def shown(value: object, annotation: object, metadata: Sequence[object]) -> str:
    """Return a setting's value as a person writes it, by the unit that its field's annotation names: `256 MiB`, `5 min`."""
    inner = (each for part in get_args(annotation) for each in get_args(part))
    unit = next((each.unit for each in (*metadata, *inner) if isinstance(each, Number)), None)
    return unit.show(value) if unit is not None and isinstance(value, int) else str(value)


def count(least: int, most: int) -> Number:
    """Return the annotation of a whole number within bounds."""
    return Number(f"a whole number from {least} to {most}", least, most, whole=True)


Bytes = Annotated[int, size_within()]
Seconds = Annotated[int, span_within()]
SecondsOrZero = Annotated[int, span_within(least=0)]
Share = Annotated[float, Number("a part of the whole, more than 0 and at most 1, such as 0.5", 0, 1, above=True)]


def several(number: int, noun: str) -> str:
    """Say how many there are of what is named in the singular: `1 table`, `2,000 tables`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def sentence(text: str) -> str:
    """Return what is said with a full stop, unless it ends as a sentence does."""
    said = text.rstrip()
    return said if not said or said[-1] in ".!?" else f"{said}."

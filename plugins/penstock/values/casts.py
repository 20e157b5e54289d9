"""From PostgreSQL's text to a typed value, as Spark SQL text.

A cast gives NULL for NULL and for a misfit, never anything in between: Spark's own casts round, overflow, and read
`0044-03-15 BC` as a date after Christ, so each is fenced by the shape of the texts that it gets exactly right.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from penstock.values import literals
from penstock.values.lake_types import STRING, mapping
from penstock.values.pgtype import PgType

Cast = Callable[[str], str]

_DATE = r"(?!0000)\d{4}-\d\d-\d\d"
_TIME = r"\d\d:\d\d:\d\d(?:\.\d{1,6})?"
_FINITE = r"-?\d++(?:\.\d++)?(?:e[+-]\d++)?"
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_ARRAY = re.compile(r"array<(.+)>")


def cast_sql(text: str, type: PgType) -> str:
    """Return the Spark SQL expression that casts `text`, itself an expression of type string.

    The text must have been rendered under the pinned session settings. NULL comes out for NULL and for a misfit.
    """
    return cast_to(text, mapping(type).lake_type)


def cast_to(text: str, lake_type: str) -> str:
    """Return the Spark SQL expression that casts `text` to a lake type, as `cast_sql` does."""
    return _cast(lake_type)(text)


def _cast(lake_type: str) -> Cast:
    if array := _ARRAY.fullmatch(lake_type):
        return _array(array[1])
    if decimal := _DECIMAL.fullmatch(lake_type):
        return _decimal(int(decimal[1]), int(decimal[2]))
    return _CASTS[lake_type]


def _string(text: str) -> str:
    return text


def _boolean(text: str) -> str:
    return f"case {text} when 't' then true when 'f' then false end"


def _integer(lake_type: str) -> Cast:
    """Accept what is rendered back as it came: Spark would also take blanks, a plus sign and leading zeros."""

    def cast(text: str) -> str:
        typed = f"try_cast({text} as {lake_type})"
        return f"case when cast({typed} as string) = {text} then {typed} end"

    return cast


def _floating(lake_type: str) -> Cast:
    """Refuse a finite number that overflows to infinity; take the three names that are no numbers."""

    def cast(text: str) -> str:
        typed = f"try_cast({text} as {lake_type})"
        finite = f"{text} rlike r'^{_FINITE}\\z' and abs({typed}) < cast('Infinity' as {lake_type})"
        return f"case when {finite} or {text} in ('NaN', 'Infinity', '-Infinity') then {typed} end"

    return cast


def _decimal(precision: int, scale: int) -> Cast:
    """Take exactly `scale` digits behind the point, as the server renders them: Spark would round more."""
    whole = rf"(?:0|[1-9]\d{{0,{precision - scale - 1}}})" if precision > scale else "0"
    fraction = rf"\.\d{{{scale}}}" if scale else ""
    return _fenced(f"decimal({precision},{scale})", f"-?{whole}{fraction}")


def _fenced(lake_type: str, pattern: str) -> Cast:
    def cast(text: str) -> str:
        return f"case when {text} rlike r'^{pattern}\\z' then try_cast({text} as {lake_type}) end"

    return cast


def _binary(text: str) -> str:
    return f"case when startswith({text}, r'\\x') and length({text}) % 2 = 0 then unhex(substr({text}, 3)) end"


def _array(element_type: str) -> Cast:
    element = _cast(element_type)
    if element_type == STRING:
        return literals.string_array
    if element_type in _INTEGERS:
        return lambda text: literals.integer_array(text, element_type)
    if element_type in _QUOTED_IN_ARRAYS:
        return lambda text: literals.cast_array(
            text, element_type, literals.quoted_array(text), literals.is_array(text), element
        )
    return lambda text: literals.cast_array(
        text, element_type, literals.bare_array(text), f"{text} like '{{%}}'", element
    )


_INTEGERS = frozenset({"int", "bigint"})

# A blank or a backslash makes the server quote these.
_QUOTED_IN_ARRAYS = frozenset({"timestamp_ntz", "timestamp", "binary"})

_CASTS: dict[str, Cast] = {
    "string": _string,
    "boolean": _boolean,
    "int": _integer("int"),
    "bigint": _integer("bigint"),
    "float": _floating("float"),
    "double": _floating("double"),
    "date": _fenced("date", _DATE),
    "timestamp_ntz": _fenced("timestamp_ntz", f"{_DATE} {_TIME}"),
    "timestamp": _fenced("timestamp", rf"{_DATE} {_TIME}\+00"),
    "binary": _binary,
    "map<string,string>": literals.hstore,
}

"""PostgreSQL's texts of arrays and hstores, taken apart by Spark SQL alone.

A regular expression describes the whole text, so that nothing is skipped in silence; a second one cuts it into
tokens. All repetitions are possessive: they run as loops, and a long text can't exhaust the JVM's stack.
"""

from __future__ import annotations

from collections.abc import Callable

_QUOTED = r'"[^"\\]*+(?:\\["\\][^"\\]*+)*+"'
_ESCAPED = r'\\(["\\])'
_BARE = r'[^",{}\\\s]++'

_TOKEN = rf"{_QUOTED}|{_BARE}"
_ARRAY = rf"^\{{(?:{_TOKEN})(?:,(?:{_TOKEN}))*+\}}\z"

_PAIR = rf"({_QUOTED})=>(NULL|{_QUOTED})"
_HSTORE = rf"^(?:{_PAIR}(?:, (?:{_PAIR}))*+)?+\z"


def bare_array(text: str) -> str:
    """Return SQL for the elements, as array<string>, of an array whose elements are never quoted.

    Expects a text that begins and ends with braces; numbers, booleans and dates are never quoted.
    """
    return f"transform(split(substr({text}, 2, length({text}) - 2), ','), e -> nullif(e, 'NULL'))"


def quoted_array(text: str) -> str:
    """Return SQL for the elements, as array<string>, of any one-dimensional array; expects `is_array`."""
    return f"transform(regexp_extract_all({text}, {_raw(_TOKEN)}, 0), e -> {_unquoted('e')})"


def is_array(text: str) -> str:
    """Return SQL that is true for a one-dimensional array with the usual bounds and one element at least.

    Source: PostgreSQL documentation, "Array Input and Output Syntax".
    """
    return f"{text} rlike {_raw(_ARRAY)}"


def cast_array(text: str, element_type: str, elements: str, fits: str, cast: Callable[[str], str]) -> str:
    """Return SQL for a typed array, NULL if `fits` is not true or if one element does not fit.

    `elements` is SQL of array<string>; `cast` gives the SQL of one element, NULL where it does not fit.
    """
    all_fit = f"forall(p, e -> e is null or {cast('e')} is not null)"
    typed = f"get(transform(array({elements}), p -> case when {all_fit} then transform(p, e -> {cast('e')}) end), 0)"
    return _case(text, element_type, fits, typed)


def integer_array(text: str, element_type: str) -> str:
    """Return SQL for an array of integers, NULL where it is not rendered back as it came.

    All of it is compiled; the functions with a lambda, which `cast_array` needs, Spark interprets row by row.
    """
    typed = f"try_cast(split(substr({text}, 2, length({text}) - 2), ',') as array<{element_type}>)"
    rendered = f"concat('{{', array_join(cast({typed} as array<string>), ',', 'NULL'), '}}')"
    return _case(text, element_type, f"{rendered} = {text}", typed)


def string_array(text: str) -> str:
    """Return SQL for an array<string>, NULL where the text is not a one-dimensional array."""
    return _case(text, "string", is_array(text), quoted_array(text))


def hstore(text: str) -> str:
    """Return SQL for a map<string,string>, NULL where the text is not an hstore's.

    Source: PostgreSQL documentation, "hstore".
    """
    keys, values = (f"regexp_extract_all({text}, {_raw(_PAIR)}, {group})" for group in (1, 2))
    # A map with a key twice would end the whole query; no hstore has one.
    unique = f"size(array_distinct({keys})) = size({keys})"
    entries = ", ".join(f"transform({tokens}, e -> {_unquoted('e')})" for tokens in (keys, values))
    return f"case when {text} rlike {_raw(_HSTORE)} and {unique} then map_from_arrays({entries}) end"


def _case(text: str, element_type: str, fits: str, typed: str) -> str:
    empty = f"cast(array() as array<{element_type}>)"
    return f"case when {text} = '{{}}' then {empty} when {fits} then {typed} end"


def _unquoted(token: str) -> str:
    inner = f"substr({token}, 2, length({token}) - 2)"
    unescaped = f"regexp_replace({inner}, {_raw(_ESCAPED)}, '$1')"
    return f"case when {token} = 'NULL' then null when startswith({token}, '\"') then {unescaped} else {token} end"


def _raw(pattern: str) -> str:
    """Quote a regular expression as a raw literal, which no session setting changes."""
    return f"r'{pattern}'"

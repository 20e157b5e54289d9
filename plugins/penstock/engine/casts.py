"""From PostgreSQL's text to a typed value, as DuckDB SQL: NULL for NULL and for a misfit, nothing in between.

DuckDB's own casts round, trim, overflow and read `0044-03-15 BC` as a year after Christ. One rule fences nearly all of
them: what is cast back must be the text again.
"""

from collections.abc import Callable, Sequence

from penstock.engine.duck import duck_type, listing, literal
from penstock.values.lake_types import STRING, decimal_digits, describe, element_type

Cast = Callable[[str], str]

_QUOTED = r'"(?:[^"\\]|\\["\\])*"'
_BARE = r'[^",{}\\\s]+'
_ELEMENT = f"{_QUOTED}|{_BARE}"
_IS_ARRAY = rf"\{{(?:{_ELEMENT})(?:,(?:{_ELEMENT}))*\}}"
_PAIR = rf"({_QUOTED})=>(NULL|{_QUOTED})"
_ANY_PAIR = rf"{_QUOTED}=>(?:NULL|{_QUOTED})"
_IS_HSTORE = rf"(?:{_ANY_PAIR}(?:, {_ANY_PAIR})*)?"
_FINITE = r"-?[0-9]+(\.[0-9]+)?(e[+-][0-9]+)?"
_HEX = r"\\x(?:[0-9a-fA-F][0-9a-fA-F])*"


def cast_to(text: str, lake_type: str) -> str:
    """Return the SQL of the value of `text`, itself the SQL of a varchar, as a lake type.

    The text must have been rendered under the pinned session settings; `text` is repeated, so it must be cheap.
    """
    if (element := element_type(lake_type)) is not None:
        return _array(text, element)
    if digits := decimal_digits(lake_type):
        precision, scale = digits
        return _decimal(text, lake_type, only_fraction=precision == scale)
    return CASTS[lake_type](text)


def cast_once(columns: Sequence[tuple[str, str, str]], others: Sequence[str], source: str) -> str:
    """Return the SQL of rows of a source with `others` of its columns, and with values made of texts.

    Each value is a name, the SQL of its text and its lake type. The text is computed once, as text_<name>, and cast from that name.
    """
    computed = [f"{text} as text_{name}" for name, text, _ in columns]
    cast = [f"{cast_to(f'text_{name}', lake_type)} as {name}" for name, _, lake_type in columns]
    return (
        f"select {listing(['*', *cast])} from (\n"
        f"select {listing([*computed, *others] or ['null as nothing'])}\nfrom {source})"
    )


def as_double(text: str, *, real: bool) -> str:
    """Return the SQL of the text of a finite number as DuckDB prints its double; `real`: it is first rounded to a `real`, as it was sent."""
    typed = f"try_cast({text} as {'float' if real else 'double'})"
    return f"case when isfinite({typed}) then cast(cast({typed} as double) as varchar) else {text} end"


def misfits(columns: Sequence[tuple[str, str, str, str]]) -> str:
    """Return the SQL of a row's map of misfits, NULL where everything fits.

    Each column is its name, the SQL of its text, the SQL of its typed value and its lake type.
    """
    checks = [
        (name, text, f"({text} is not null and {typed} is null)")
        for name, text, typed, lake_type in columns
        if lake_type != STRING
    ]
    if not checks:
        return "cast(null as map(varchar, varchar))"
    some = " or ".join(check for *_, check in checks)
    entries = ", ".join(
        f"case when {check} then {{'k': {literal(name)}, 'v': {text}}} end" for name, text, check in checks
    )
    return f"case when {some} then map_from_entries(list_filter([{entries}], lambda e: e is not null)) end"


def distinguishable(value: str, lake_type: str) -> str:
    """Return an expression that is equal for two values where PostgreSQL has one text of them: -0 is not 0, and maps are their entries."""
    if describe(lake_type).signed_zero:
        return f"cast({value} as varchar)"
    return f"list_sort(map_entries({value}))" if lake_type.startswith("map<") else value


def _same(text: str, type_: str, guard: str = "") -> str:
    typed = f"try_cast({text} as {type_})"
    return f"case when {guard}cast({typed} as varchar) = {text} then {typed} end"


def _boolean(text: str) -> str:
    return f"case {text} when 't' then true when 'f' then false end"


def _floating(type_: str) -> Cast:
    """Refuse a finite number that overflows to infinity; take the three names that are no numbers."""

    def cast(text: str) -> str:
        typed = f"try_cast({text} as {type_})"
        finite = f"isfinite({typed}) and regexp_full_match({text}, {literal(_FINITE)})"
        return f"case when {text} in ('NaN', 'Infinity', '-Infinity') or ({finite}) then {typed} end"

    return cast


def _decimal(text: str, lake_type: str, *, only_fraction: bool) -> str:
    """Take what is rendered back as it came; where no digit is before the point, DuckDB leaves out the server's 0."""
    if not only_fraction:
        return _same(text, lake_type)
    typed = f"try_cast({text} as {lake_type})"
    return f"case when regexp_replace(cast({typed} as varchar), '^(-?)\\.', '\\10.') = {text} then {typed} end"


def _date(text: str) -> str:
    return _same(text, "date", f"length({text}) = 10 and ")  # `infinity` and 10000-01-01 are dates to DuckDB


def _timestamp(text: str) -> str:
    return _same(text, "timestamp", f"{text}[5] = '-' and ")  # the year 10000 too


def _timestamptz(text: str) -> str:
    """Read the clock of UTC: DuckDB renders a time without zone six times as fast as one with it."""
    clock = f"left({text}, -3)"
    typed = f"try_cast({clock} as timestamp)"
    fits = f"right({text}, 3) = '+00' and {text}[5] = '-' and cast({typed} as varchar) = {clock}"
    return f"case when {fits} then make_timestamptz(epoch_us({typed})) end"


def _binary(text: str) -> str:
    return f"case when regexp_full_match({text}, {literal(_HEX)}) then unhex({text}[3:]) end"


def _unquoted(element: str) -> str:
    inner = f"regexp_replace({element}[2:-2], '\\\\([\"\\\\])', '\\1', 'g')"
    return f"case when {element} = 'NULL' then null when {element}[1] = '\"' then {inner} else {element} end"


def _array(text: str, element: str) -> str:
    empty = f"when {text} = '{{}}' then cast([] as {duck_type(element)}[])"
    if describe(element).whole_number:
        typed = f"try_cast('[' || {text}[2:-2] || ']' as {duck_type(element)}[])"
        back = f"'{{' || replace(cast({typed} as varchar)[2:-2], ', ', ',') || '}}'"
        return f"case {empty} when {back} = {text} then {typed} end"
    if describe(element).quoted:
        elements = f"list_transform(regexp_extract_all({text}, {literal(_ELEMENT)}), lambda e: {_unquoted('e')})"
        fits = f"regexp_full_match({text}, {literal(_IS_ARRAY)})"
    else:
        elements = f"list_transform(string_split({text}[2:-2], ','), lambda e: nullif(e, 'NULL'))"
        fits = f"({text}[1] = '{{' and {text}[-1] = '}}')"
    if element == STRING:
        return f"case {empty} when {fits} then {elements} end"
    cast = cast_to("e", element)
    lost = f"len(list_filter({elements}, lambda e: e is not null and ({cast}) is null))"
    return (
        f"case {empty} when {fits} then case when {lost} = 0 then list_transform({elements}, lambda e: {cast}) end end"
    )


def _hstore(text: str) -> str:
    keys, values = (
        f"list_transform(regexp_extract_all({text}, {literal(_PAIR)}, {group}), lambda e: {_unquoted('e')})"
        for group in (1, 2)
    )
    fits = f"regexp_full_match({text}, {literal(_IS_HSTORE)}) and len(list_distinct({keys})) = len({keys})"
    return f"case when {fits} then map({keys}, {values}) end"


CASTS: dict[str, Cast] = {
    STRING: lambda text: text,
    "boolean": _boolean,
    "int": lambda text: _same(text, "integer"),
    "bigint": lambda text: _same(text, "bigint"),
    "float": _floating("float"),
    "double": _floating("double"),
    "date": _date,
    "timestamp_ntz": _timestamp,
    "timestamp": _timestamptz,
    "binary": _binary,
    "map<string,string>": _hstore,
}


def file_names(names: Sequence[str]) -> list[str]:
    """Return the names under which columns stand in a data file: their own, unless DuckDB takes two of them for one.

    Iceberg reads by field id and does not mind; whoever reads the files bare does.
    """
    folded = [name.lower() for name in names]
    return list(names) if len(set(folded)) == len(folded) else [f"c{i}" for i in range(len(names))]


def field_id(lake_type: str, ids: Sequence[int]) -> str:
    """Return a column's field ids as COPY takes them: its own, and those of what is in it."""
    inner = zip(_PARTS.get(lake_type.partition("<")[0], ()), ids[1:], strict=True)
    nested = "".join(f", {part}: {id_}" for part, id_ in inner)
    return f"{{__duckdb_field_id: {ids[0]}{nested}}}" if nested else str(ids[0])


_PARTS = {"array": ("element",), "map": ("key", "value")}

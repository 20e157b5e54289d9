"""What a model has refused, in the words of whoever wrote the file: where, which key, what it expected, what came.

Models say what a value looks like (`penstock.units`, `penstock.config.validators`); here pydantic's own complaints get words, too.
"""

import re
import typing
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from penstock.config.store_options import nearest
from penstock.config.yaml_document import Document, Location, Problem, kind

_MOST_SHOWN = 60
_SECRETIVE = ("options", "conf", "properties", "channels")
"""Free texts in which a password may have been written: what came is not shown again."""
_WORDS = {
    "missing": "expected a value: this key has no default",
    "bool_type": "expected true or false",
    "bool_parsing": "expected true or false",
    "string_type": "expected a text",
    "list_type": "expected a list, such as [a, b]",
    "dict_type": "expected keys with values, such as {key: value}",
    "too_short": "expected one entry at least",
    "invalid_key": "no key, because it is no text; put it in quotes",
}
_MOVED = re.compile(r"([\w.-]+): (.*)", re.DOTALL)
"""A validator of a section names the key that it means, relative to the section."""


def problem(document: Document, model: type[BaseModel], entry: Any, environment: Mapping[str, str]) -> Problem:
    """Return what one of pydantic's errors means for the file; no value of an environment variable is in it."""
    location: Location = entry["loc"]
    said = entry["msg"].removeprefix("Value error, ")
    moved = _MOVED.fullmatch(said) if entry["type"] == "value_error" else None
    if moved is not None:
        here, said = document.at(location), moved[2]
        location = (*location, *([moved[1]] if isinstance(here, dict) and moved[1] in here else moved[1].split(".")))
    dotted = ".".join(map(str, location)) or None
    if entry["type"] == "extra_forbidden":
        message = f"unknown key; {_nearest_key(model, location)}"
    else:
        message = document.without_variables(_words(document, model, entry, location, said), location, environment)
    return Problem(document.path, document.line(location), dotted, message)


def _words(document: Document, model: type[BaseModel], entry: Any, location: Location, said: str) -> str:
    """Return what was expected and what came."""
    known = entry.get("ctx", {})
    if entry["type"] in ("model_type", "dict_type") and (keys := list(_keys(model, location))):
        said = f"expected keys of this section, such as {', '.join(keys[:3])}; leave the section out for its defaults"
    elif entry["type"] == "literal_error":
        said = f"expected {known['expected'].replace(chr(39), '')}"
    elif entry["type"] == "too_short" and known.get("field_type") not in (None, "List"):
        said = _WORDS["missing"]
    else:
        said = _WORDS.get(entry["type"], said)
    if entry["type"] == "missing" or "got " in said or not said.startswith("expected"):
        return said
    value = document.at(location)
    quotes = "; put it in quotes" if entry["type"] == "string_type" and isinstance(value, bool | int | float) else ""
    first, separator, rest = said.partition("; ")
    return f"{first}, got {_came(value, location)}{separator}{rest}{quotes}"


def _came(value: object, location: Location) -> str:
    """Show the value as the file has it, with its variables' names, unless it is long or may be a secret."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict | list | None) or any(part in _SECRETIVE for part in location[:-1]):
        return kind(value)
    text = str(value)
    if "@" in text or ("://" in text and location[-1] != "uri"):
        return "an address"  # which may hold a password
    shown = text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."
    return repr(shown) if isinstance(value, str) else shown


def _nearest_key(model: type[BaseModel], location: Location) -> str:
    """Return the key that may have been meant: of this section, or the same key of another section."""
    key, known = str(location[-1]), list(_keys(model, location[:-1]))
    elsewhere = [dotted for dotted in _dotted(model) if dotted.split(".")[-1] == key]
    if elsewhere and key not in known:
        return f"did you mean {' or '.join(elsewhere[:2])}?"
    return nearest(key, known)


def _dotted(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    for name, field in model.model_fields.items():
        key = f"{prefix}{field.alias or name}"
        yield key
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from _dotted(field.annotation, f"{key}.")


def _keys(model: type[BaseModel], location: Location) -> Iterator[str]:
    """Yield the keys of the section at a location; none where there is no section."""
    for part in location:
        if isinstance(part, int):
            continue
        fields = {field.alias or name: field.annotation for name, field in model.model_fields.items()}
        inner = _section(fields.get(part))
        if inner is None:
            return
        model = inner
    yield from (field.alias or name for name, field in model.model_fields.items())


def _section(annotation: Any) -> type[BaseModel] | None:
    """Return the model that a field holds, itself or in a list."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for each in typing.get_args(annotation) if (found := _section(each)) is not None), None)

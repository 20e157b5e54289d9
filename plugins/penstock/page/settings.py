"""The settings in force of a pipeline, and which of them its file says otherwise than the defaults. Pure.

What may hold a secret is only said to be set: the heartbeat's address, and the values of a store's options and of Spark's.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from penstock.config.model import Pipeline
from penstock.units import Section, shown

_SECRET = frozenset({"health.heartbeat"})
_SECRET_VALUES = frozenset({"landing.options", "spark.conf"})
_NOTHING = "not set"


@dataclass(frozen=True)
class Setting:
    """Show one key with its value; `default` is None for a key that has none, and `differs` says that the value is another."""

    key: str
    value: str
    default: str | None
    differs: bool


def settings(pipeline: Pipeline) -> list[Setting]:
    """Return every setting of a pipeline, in the order of its file's sections."""
    return list(_settings(pipeline, ""))


def _settings(section: Section, above: str) -> Iterator[Setting]:
    for name, field in type(section).model_fields.items():
        key, value = f"{above}{field.alias or name}", getattr(section, name)
        if isinstance(value, Section):
            yield from _settings(value, f"{key}.")
            continue
        default = field.get_default(call_default_factory=True)
        has_default = default is not PydanticUndefined and key != "landing.uri"  # its default is of the project folder
        yield Setting(
            key,
            _shown_value(key, value, field),
            _shown_value(key, default, field) if has_default else None,
            has_default and value != default,
        )


def _shown_value(key: str, value: Any, field: FieldInfo) -> str:
    if value is None or value in ([], {}, ()):
        return _NOTHING
    if key in _SECRET:
        return "set"
    if isinstance(value, Mapping):
        return ", ".join(sorted(value) if key in _SECRET_VALUES else (f"{name}={each}" for name, each in value.items()))
    if isinstance(value, list):
        return ", ".join(_entry(each) for each in value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return shown(value, field.annotation, field.metadata)


def _entry(value: Any) -> str:
    return (
        " ".join(f"{name}={each}" for name, each in value.model_dump().items())
        if isinstance(value, Section)
        else str(value)
    )

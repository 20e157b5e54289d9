"""The one JSON form of a record: a dataclass is written and read by the types of its fields.

Plans for Spark, its results, manifests of landed files and what the ledger keeps as JSON are of this form. Pydantic does it, and is loaded by the first record that is written
or read: an executor of Spark, which carries records as they are, does not need it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self, TypeVar

if TYPE_CHECKING:
    from pydantic import TypeAdapter

Record = TypeVar("Record")
_ADAPTERS: dict[type[Any], TypeAdapter[Any]] = {}


class JsonForm:
    """Give a dataclass its JSON form; what is read has the types that its fields say, or ValueError is raised."""

    __slots__ = ()

    def dumps(self) -> str:
        """Return the record as JSON text."""
        return _adapter(type(self)).dump_json(self).decode()

    @classmethod
    def loads(cls, text: str) -> Self:
        """Read what `dumps` wrote."""
        return _adapter(cls).validate_json(text)

    def to_json(self) -> dict[str, Any]:
        """Return the record as plain data, of JSON's types alone."""
        return plain(self)

    @classmethod
    def from_json(cls, data: Any) -> Self:
        """Read what `to_json` wrote."""
        return record_of(cls, data)


def plain(record: Any) -> dict[str, Any]:
    """Return any dataclass as plain data, of JSON's types alone."""
    data: dict[str, Any] = _adapter(type(record)).dump_python(record, mode="json")
    return data


def record_of(kind: type[Record], data: Any) -> Record:
    """Read plain data, or a row of a database, as a dataclass; raises ValueError, without a value, where a field has another type."""
    from pydantic import ValidationError  # noqa: PLC0415  # see above

    try:
        return _adapter(kind).validate_python(data)
    except ValidationError as error:
        wrong = (f"{'.'.join(map(str, each['loc']))} ({each['type']})" for each in error.errors(include_input=False))
        raise ValueError(f"expected the fields of {kind.__name__}, got others: {', '.join(wrong)}") from None


def _adapter(kind: type[Record]) -> TypeAdapter[Record]:
    from pydantic import TypeAdapter  # noqa: PLC0415  # see above

    if kind not in _ADAPTERS:
        _ADAPTERS[kind] = TypeAdapter(kind)
    return _ADAPTERS[kind]


def fields_of(record: object, names: str) -> dict[str, Any]:
    """Return what a report shows of a record: some of its fields, named with blanks between."""
    return {name: getattr(record, name) for name in names.split()}

"""What a table is called, quoted for Spark SQL, and where it keeps its files: a folder that no other table's is inside of or around.

A folder's name is a readable hint and an id, with a dash between them; hints have no dash, so a table's folder never is a
part of another's path. The catalog alone knows the name itself.
"""

import re
from collections.abc import Iterable, Sequence

_HINT = 40
_OTHERS = re.compile(r"[^A-Za-z0-9_]+")


def new_location(warehouse: str, target: Sequence[str], id: str) -> str | None:
    """Return the folder of a new table, `id` being its own for ever; None where the warehouse is no place but a name."""
    if not is_place(warehouse):
        return None  # a REST catalog that chooses the places itself
    *namespace, name = map(_hint, target)
    return "/".join([warehouse.rstrip("/"), *namespace, f"{name}-{id}"])


def is_place(warehouse: str) -> bool:
    """Return whether a warehouse is a folder, and not a name that only the catalog knows."""
    return ":/" in warehouse or warehouse.startswith("/")


def folder_of(metadata_file: str) -> str:
    """Return the folder of the table that has this metadata file; its metadata's, where that was put elsewhere."""
    return metadata_file.rpartition("/")[0].removesuffix("/metadata")


def owns_folder(location: str, others: Sequence[str]) -> bool:
    """Return whether no other table's folder is this one, is inside of it, or is around it.

    Where two share a place, the files of one look like orphans of the other.
    """
    own = _whole(location)
    return not any(own.startswith(_whole(other)) or _whole(other).startswith(own) for other in others)


def _hint(name: str) -> str:
    return _OTHERS.sub("_", name)[:_HINT]


def _whole(location: str) -> str:
    return f"{location.rstrip('/')}/"


def identifier(name: str) -> str:
    """Quote one name: `a``b` for a`b.

    Source: Spark SQL reference, "Identifiers" (delimited identifier).
    """
    return "`" + name.replace("`", "``") + "`"


def path(*names: str) -> str:
    """Quote a name of several parts, such as catalog, namespace and table, or struct and field."""
    return ".".join(identifier(name) for name in names)


def literal(text: str) -> str:
    """Quote a text as a string literal.

    Source: Spark SQL reference, "Literals" (a backslash escapes, whatever follows it).
    """
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def listing(parts: Iterable[str], indent: str = "  ") -> str:
    """Lay parts out one per line, separated by commas."""
    return f",\n{indent}".join(parts)

"""The one place where a name or a text becomes part of Spark SQL."""

from __future__ import annotations

from collections.abc import Iterable


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

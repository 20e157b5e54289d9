"""SQL text that makes namespaces and tables, and names in it, quoted for Spark SQL."""

from collections.abc import Iterable, Mapping, Sequence

from penstock.lake.columns import LakeColumn

CUTS_TABLE = "_penstock_cuts"
CUTS_COLUMNS = (
    LakeColumn("cut_lsn", "bigint"),
    LakeColumn("lsn", "string"),
    LakeColumn("published_at", "timestamp"),
    LakeColumn("attempt", "string"),
    LakeColumn("tables", "array<struct<name: string, snapshot_id: bigint, complete_through: bigint, state: string>>"),
    LakeColumn("era", "int"),
    LakeColumn("source_time", "timestamp"),
    LakeColumn(
        "conflicts",
        "array<struct<name: string, update_missing: bigint, delete_missing: bigint, insert_existing: bigint, misfits: bigint>>",
    ),
)


def create_namespaces(catalog: str, namespaces: Iterable[Sequence[str]]) -> list[str]:
    """Return the statements that make these namespaces and all they lie in, outer ones first.

    They run one after the other, before the tables of a run are worked on in parallel: in a JDBC catalog two
    sessions that make the same namespace at once get a duplicate key, `if not exists` or not.
    """
    nested = {tuple(names[:depth]) for names in namespaces for depth in range(1, len(names) + 1)}
    return [f"create namespace if not exists {path(catalog, *names)}" for names in sorted(nested)]


def create_table(
    catalog: str,
    target: Sequence[str],
    columns: Sequence[LakeColumn],
    properties: Mapping[str, str],
    *,
    partitioned_by: str | None = None,
    location: str | None = None,
) -> str:
    """Return the statement that makes a table with these columns, unless it is there; without a `location` the catalog's own."""
    rows = listing(f"{identifier(column.name)} {column.type}" for column in columns)
    pairs = listing(f"{literal(name)} = {literal(value)}" for name, value in sorted(properties.items()))
    made = f"create table if not exists {path(catalog, *target)} (\n  {rows}\n)\nusing iceberg\n"
    parts = f"partitioned by ({partitioned_by})\n" if partitioned_by else ""
    place = f"location {literal(location)}\n" if location else ""
    return f"{made}{parts}{place}tblproperties (\n  {pairs}\n)"


def drop_table(catalog: str, target: Sequence[str]) -> str:
    """Return the statement that drops a table and leaves its files."""
    return f"drop table if exists {path(catalog, *target)}"


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

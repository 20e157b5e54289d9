"""The two tables that an Iceberg JDBC catalog keeps in PostgreSQL, made once, before any Spark application runs.

Left to Spark, two applications that start at the same moment both try to make them and one fails.
"""

from typing import Any

from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import URL

from stack.spark.spark_conf import CATALOG


def sqlalchemy_url(dsn: str) -> URL:
    """Return SQLAlchemy's form of a libpq connection string (its text form hides the password)."""
    parts: dict[str, Any] = conninfo_to_dict(dsn)
    return URL.create(
        "postgresql+psycopg",
        username=parts["user"],
        password=parts["password"],
        host=parts["host"],
        port=int(parts["port"]),
        database=parts["dbname"],
    )


def jdbc_url(dsn: str) -> str:
    """Return Java's form of a libpq connection string, without user and password."""
    parts = conninfo_to_dict(dsn)
    return f"jdbc:postgresql://{parts['host']}:{parts['port']}/{parts['dbname']}"


def create_tables(dsn: str) -> None:
    """Make the catalog's tables (with the columns of schema V1) in the database of `dsn`, unless they are there."""
    from pyiceberg.catalog.sql import SqlCatalog  # noqa: PLC0415  # a second of imports, needed once

    uri = sqlalchemy_url(dsn).render_as_string(hide_password=False)
    SqlCatalog(CATALOG, uri=uri, schema_version="v1", init_catalog_tables="true").engine.dispose()

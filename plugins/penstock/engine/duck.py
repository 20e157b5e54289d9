"""A DuckDB of a task's own, and the one place where a name or a text becomes part of its SQL."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.engine.failure import EngineFailure
from penstock.engine.files import Files
from penstock.engine.order import Resources
from penstock.errors import LakeError
from penstock.values.lake_types import describe

_BATCH = 1 << 17
# A join reads its left side as it comes and holds its right side in memory, as written: of landing files, and of data
# files read by field id, the optimizer has no numbers, and would hold the table to find a few rows in it.
_AS_WRITTEN = "join_order,build_side_probe_side"
_PATTERN = re.compile(r"[\[*?]")
_FEW_COLUMNS = 100
_SLOW_FOR_MANY_COLUMNS = "projection_placement,common_subexpressions,statistics_propagation"
"""Parts of DuckDB's optimizer whose time grows with the square of the columns: half a minute for PostgreSQL's 1,600."""


@dataclass(frozen=True)
class Duck:
    """Run SQL over files; a result is always read to its end, for an open one would keep the connection busy."""

    connection: duckdb.DuckDBPyConnection
    files: Files

    def execute(self, statement: str) -> None:
        """Run a statement."""
        self.connection.execute(statement).fetchall()

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Return every row of a query."""
        found: list[tuple[Any, ...]] = self.connection.execute(query).fetchall()
        return found

    def row(self, query: str) -> tuple[Any, ...]:
        """Return the one row of a query."""
        [found] = self.rows(query)
        return found

    def integers(self, query: str) -> Iterator[list[npt.NDArray[np.int64]]]:
        """Yield the columns of a query, all of them whole numbers, a batch of rows at a time; run nothing else meanwhile."""
        for batch in self.connection.sql(query).to_arrow_reader(_BATCH):
            yield [column.to_numpy(zero_copy_only=False).astype(np.int64, copy=False) for column in batch.columns]

    def landed(self, locations: Iterable[str]) -> str:
        """Return the list of landing files for read_parquet."""
        return _listed(self.files.landing.path(location) for location in locations)

    def stored(self, locations: Iterable[str]) -> str:
        """Return the list of the lake's files for read_parquet."""
        return _listed(self.files.lake.path(location) for location in locations)

    @contextmanager
    def table(self, name: str, columns: Mapping[str, npt.NDArray[np.int64]]) -> Iterator[None]:
        """Let queries see arrays as a table, for a while."""
        self.connection.register(name, pa.table(dict(columns)))
        try:
            yield
        finally:
            self.connection.unregister(name)


@contextmanager
def connect(resources: Resources, files: Files, columns: int = 0) -> Iterator[Duck]:
    """Open a database in memory that takes no more than it may, for a table of so many columns.

    What outgrows the memory is spilled to the disk: rows, in a folder that only this user may read. Raises EngineFailure for
    what fails in the block, LakeError("merge-failed") where the memory is not enough.
    """
    settings: dict[str, Any] = {
        "threads": resources.threads,
        "preserve_insertion_order": False,
        "autoinstall_known_extensions": False,  # a task downloads nothing
        "disabled_optimizers": _AS_WRITTEN + (f",{_SLOW_FOR_MANY_COLUMNS}" if columns > _FEW_COLUMNS else ""),
    }
    if resources.memory_bytes is not None:
        settings["memory_limit"] = f"{resources.memory_bytes}B"
    folders = os.environ.get("SPARK_LOCAL_DIRS")  # where Spark spills: of its Python workers this is set
    with TemporaryDirectory(prefix="penstock-merge-", dir=folders.split(",")[0] if folders else None) as spilled:
        connection = duckdb.connect(config={**settings, "temp_directory": spilled})
        try:
            connection.execute("set timezone = 'UTC'").fetchall()
            connection.execute("set enable_progress_bar = false").fetchall()  # it is drawn on the standard output
            files.landing.register(connection)
            files.lake.register(connection)
            yield Duck(connection, files)
        except duckdb.OutOfMemoryException as error:
            if (failure := EngineFailure.of(error)).trouble:
                raise failure from None
            raise LakeError(
                "merge-failed",
                f"expected to work in {(resources.memory_bytes or 0) >> 20} MiB of memory and the disk, got out of memory, as by "
                "a very large row; raise spark.task_memory, then resume the table, or fill the interval again",
            ) from None
        except duckdb.Error as error:
            raise EngineFailure.of(error) from None
        finally:
            connection.close()


def identifier(name: str) -> str:
    """Quote one name."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str | None) -> str:
    """Quote a text as a string literal; None is NULL."""
    return "null" if text is None else "'" + text.replace("'", "''") + "'"


def text(value: str | None) -> str:
    """Return a text, or NULL of a text's type: a column of NULLs without a type would be written as one of no type."""
    return f"cast({literal(value)} as varchar)"


def listing(parts: Iterable[str]) -> str:
    """Lay parts out one per line, separated by commas."""
    return ",\n  ".join(parts)


def duck_type(lake_type: str) -> str:
    """Return DuckDB's name of a lake type."""
    return describe(lake_type).duckdb


def read_by_id(source: str, fields: Iterable[tuple[int, str, str, str | None]], *, places: bool = False) -> str:
    """Return the SQL that reads columns of files by field id, so that a renamed one is the same.

    Each field is an id, the name to give it, its lake type, and the text that a file without it shows. With `places`
    the columns `file_index` and `file_row_number` say where a row stands.
    """
    # all defaults of the map must have one type: DuckDB casts a text to the column's
    schema = ", ".join(
        f"{id_}: {{name: '{name}', type: {literal(duck_type(type_))}, default_value: cast({literal(default)} as varchar)}}"
        for id_, name, type_, default in fields
    )
    known = f"schema = map {{{schema}}}, " if schema else ""
    numbered = "file_row_number = true, " if places else ""
    return f"read_parquet({source}, {known}{numbered}hive_partitioning = false)"


def _listed(paths: Iterable[str]) -> str:
    """Quote paths, which DuckDB takes for patterns: in brackets, `*` is itself."""
    return "[" + ", ".join(literal(_PATTERN.sub(lambda part: f"[{part[0]}]", path)) for path in paths) + "]"

"""One table of the lake during a run: made, evolved, looked at.

Nothing here moves `main`: `staging` writes the metadata file that would, and whoever holds the catalog's pointer decides.
"""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from penstock.errors import LakeError
from penstock.lake import ddl
from penstock.lake.columns import DROPPED_NOTE, MISFITS, Evolution, LakeColumn, lake_column
from penstock.lake.ddl import path
from penstock.lake.properties import new_location
from penstock.shapes.mirror_column import MirrorColumn
from penstock.values.defaults import Unsupported, default_literal
from penstock.values.lake_types import element_type
from penstock_spark import clock
from penstock_spark.failures import own_failure
from penstock_spark.iceberg_table import IcebergTable
from penstock_spark.session import file_io, iceberg_catalog, java

_ABSENT = frozenset({"NoSuchTableException", "NoSuchNamespaceException"})
METADATA_PARSER = "org.apache.iceberg.TableMetadataParser"


@dataclass(frozen=True)
class LakeTable:
    """Name a table of the catalog."""

    session: SparkSession
    catalog: str
    target: tuple[str, ...]

    @property
    def sql_name(self) -> str:
        """Return the table's quoted name."""
        return path(self.catalog, *self.target)

    # --- making and evolving ------------------------------------------------------------------------

    def require_whole(self, shown: str) -> None:
        """Read the metadata file that the catalog shows, once; raises what Iceberg raises for one that is gone or damaged.

        A catalog's own look at the table reads a damaged one twenty times, for more than a minute. What passes is tried again
        by the store's client, and once more when the run's other tables are done.
        """
        java(METADATA_PARSER).read(file_io(self.session, self.catalog), shown)

    def create(
        self, columns: Sequence[LakeColumn], properties: Mapping[str, str], partitioned_by: str | None = None
    ) -> None:
        """Make the table in a namespace that is there, and in a folder of its own."""
        warehouse = self.session.conf.get(f"spark.sql.catalog.{self.catalog}.warehouse", "")
        location = new_location(warehouse, self.target, uuid.uuid4().hex)
        made = ddl.create_table(
            self.catalog, self.target, columns, properties, partitioned_by=partitioned_by, location=location
        )
        self.session.sql(made)

    def drop(self) -> None:
        """Drop the table; its files stay."""
        self.session.sql(ddl.drop_table(self.catalog, self.target))

    def evolve(self, transaction: Any, wanted: Evolution) -> None:
        """Give a table the wanted columns inside an Iceberg transaction, new ones before `_misfits`.

        In three steps, because a name has to be free before another column takes it.
        """
        if wanted.deleted or wanted.widened:
            update = transaction.updateSchema()
            names = {now: before for before, now in wanted.renamed}
            for name in wanted.deleted:
                update = update.deleteColumn(name)
            for name, type_ in wanted.widened:
                update = self.widen(update, names.get(name, name), type_)
            update.commit()
        if wanted.renamed:
            _rename(transaction, wanted.renamed)
        if wanted.added or wanted.noted:
            update = transaction.updateSchema()
            for column in wanted.added:
                update = self._add(update, column)
            for name in wanted.noted:
                update = update.updateColumnDoc(name, DROPPED_NOTE)
            update.commit()

    def widen(self, update: Any, path_: str, type_: str) -> Any:
        """Give a field of a table another type in an update of its schema, an array by its elements."""
        element = element_type(type_)
        return update.updateColumn(f"{path_}.element" if element else path_, self.iceberg_type(element or type_))

    def _add(self, update: Any, column: MirrorColumn) -> Any:
        """Add a column with the default that old rows show at the source.

        Source: Iceberg specification, "Default values" (initial-default, format version 3).
        """
        type_ = self.iceberg_type(lake_column(column).type)
        default = self._default(column, type_)
        if default is None:
            update = update.addColumn(None, column.name, type_)
        else:
            update = update.addColumn(None, column.name, type_, None, default)
        return update.moveBefore(column.name, MISFITS.name)

    # --- details ------------------------------------------------------------------------------------

    def find(self) -> IcebergTable | None:
        """Return the table as the catalog shows it now, or None where it has none of the name."""
        try:
            return IcebergTable(self.load())
        except Py4JJavaError as error:
            if error.java_exception.getClass().getSimpleName() in _ABSENT:
                return None
            raise

    def find_if_readable(self) -> tuple[IcebergTable | None, str | None]:
        """Return the table as `find` does, or, of one that cannot be read any more, why."""
        try:
            return self.find(), None
        except Exception as error:
            failure = own_failure(error, self.session, ".".join(self.target), ())
            if failure is None or failure.slug != "lake-unreadable" or failure.refused:
                raise
            return None, failure.cause

    def load(self) -> Any:
        """Return Iceberg's own table, as the catalog shows it now, but for times that have not come yet."""
        return clock.without_future(iceberg_catalog(self.session, self.catalog).loadTable(self.identifier()))

    def identifier(self) -> Any:
        """Return Iceberg's own form of the table's name."""
        parts = SparkContext._gateway.new_array(java("java.lang.String"), len(self.target))
        for place, part in enumerate(self.target):
            parts[place] = part
        return java("org.apache.iceberg.catalog.TableIdentifier").of(parts)

    def iceberg_type(self, lake_type: str) -> Any:
        """Return Iceberg's own form of a type."""
        spark_type = java("org.apache.spark.sql.types.DataType").fromDDL(lake_type)
        return java("org.apache.iceberg.spark.SparkSchemaUtil").convert(spark_type)

    def _default(self, column: MirrorColumn, type_: Any) -> Any:
        if column.missing_text is None:
            return None
        value = column.missing_text if column.as_text else default_literal(column.type, column.missing_text)
        if isinstance(value, Unsupported):
            raise LakeError(
                "schema-change",
                f"expected a default of the new column {column.name} that Iceberg can keep: {value.reason}; "
                "copy the table again",
            )
        literal = java("org.apache.iceberg.expressions.Expressions").lit(_for_java(value)).to(type_)
        if literal is None:
            raise LakeError(
                "schema-change",
                f"expected the default of the new column {column.name} to fit its lake type, it does not; "
                "copy the table again",
            )
        return literal


def _rename(transaction: Any, renamed: Sequence[tuple[str, str]]) -> None:
    """Rename columns, by way of names that nobody has: two may swap theirs."""
    passing = [(before, f"{uuid.uuid4().hex}", now) for before, now in renamed]
    for pairs in ([(a, b) for a, b, _ in passing], [(b, c) for _, b, c in passing]):
        update = transaction.updateSchema()
        for before, now in pairs:
            update = update.renameColumn(before, now)
        update.commit()


def next_metadata_name(base: Any) -> str:
    """Return the name of the metadata file that follows this metadata."""
    codec = base.properties().get("write.metadata.compression-codec") or "none"
    present = base.metadataFileLocation().rsplit("/", 1)[-1]
    version = present.split("-", 1)[0]
    number = int(version) + 1 if version.isdigit() else 0
    return f"{number:05d}-{uuid.uuid4()}{java(METADATA_PARSER).getFileExtension(codec)}"


def commit_marked(update: Any, marks: Mapping[str, str]) -> None:
    """Commit an update of Iceberg's own that makes a snapshot, with the marks in its summary."""
    for name, value in marks.items():
        update = update.set(name, value)
    update.commit()


def _for_java(value: bool | int | float | Decimal | str | bytes | date | datetime) -> Any:
    """Return what py4j hands over as the Java value that Iceberg makes a literal of."""
    if isinstance(value, date):  # a datetime is one too
        return value.isoformat()
    return str(value) if isinstance(value, Decimal) else value

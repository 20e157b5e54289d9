"""What a task has read and written, as datasets of OpenLineage, with the LSNs and rows between.

It is noted only where the OpenLineage provider listens: then its packages are there, and nobody else imports them. No failure of it is
a failure of the task.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from airflow.sdk import DAG

from penstock.orchestration.links import task_key

if TYPE_CHECKING:
    from penstock.flow.capture.run import CaptureReport
    from penstock.flow.context import Context
    from penstock.ledger.records import CutRecord, TableWork
    from penstock.ledger.table_records import TableRecord
    from penstock.lsn import Lsn

FILE = "file"
RUN_FACET = "penstock_run"
_STORAGE = "iceberg"


@dataclass(frozen=True, slots=True)
class Done:
    """Say what one task has done to the tables of a pipeline, by name; `counts` are by kind.

    Its changes went from the source to the landing zone, or as far as the lake: then `written` counts the rows that its tables got.
    """

    from_lsn: Lsn | None
    upto_lsn: Lsn
    tables: Mapping[str, TableRecord]
    counts: Mapping[str, Mapping[str, int]]
    written: Mapping[str, int] = field(default_factory=dict)

    def and_then(self, later: Done) -> Done:
        """Return this and what the same task did after it: counts add up, but of a table's rows the newest count holds."""
        counts = {
            name: {**_sum(self.counts.get(name, {}), more), "rows": more["rows"]} for name, more in later.counts.items()
        }
        return replace(
            later,
            from_lsn=self.from_lsn,
            tables={**self.tables, **later.tables},
            counts={**self.counts, **counts},
            written=_sum(self.written, later.written),
        )


def _sum(some: Mapping[str, int], more: Mapping[str, int]) -> dict[str, int]:
    return {name: some.get(name, 0) + more.get(name, 0) for name in {**some, **more}}


_noted: dict[tuple[str, str, str], tuple[Done, Any]] = {}


def attach(dag: DAG) -> None:
    """Let the OpenLineage provider, where there is one, ask every task of a DAG for its lineage."""
    for each in dag.tasks:
        each.get_openlineage_facets_on_complete = _facets


def _facets(ti: Any) -> Any:
    """Return what a task of this process has noted as the provider wants it, None where it noted nothing."""
    return _noted.get(task_key(ti), (None, None))[1]


def captured(ctx: Context, ti: Any, report: CaptureReport) -> None:
    """Note what a run of capture has landed."""
    _note(ctx, ti, lambda: _captured(ctx, report))


def published(ctx: Context, ti: Any, cut: CutRecord, moved: Sequence[TableWork]) -> None:
    """Note what a cut has brought to the lake."""
    _note(ctx, ti, lambda: _published(ctx, cut, moved))


def _captured(ctx: Context, report: CaptureReport) -> Done:
    known = {table.oid: table for table in ctx.ledger.tables.all(ctx.name)}
    changes = {known[oid].qualified: (known[oid], count) for oid, count in report.changes_of.items() if oid in known}
    return Done(
        from_lsn=report.windows[0].from_lsn,
        upto_lsn=report.upto,
        tables={name: table for name, (table, _) in changes.items()},
        counts={name: {"changes": count} for name, (_, count) in changes.items()},
    )


def _published(ctx: Context, cut: CutRecord, moved: Sequence[TableWork]) -> Done:
    known = {table.qualified: table for table in ctx.ledger.tables.all(ctx.name)}
    before = [each.lsn for each in ctx.ledger.merges.cuts(ctx.name, limit=2) if each.lsn < cut.lsn]
    return Done(
        from_lsn=before[0] if before else None,
        upto_lsn=cut.lsn,
        tables={each.qualified: known[each.qualified] for each in moved if each.qualified in known},
        counts={each.qualified: {**each.changes, "rows": each.rows} for each in moved},
        written={
            each.qualified: each.inserts + each.updates if any(each.changes.values()) else each.rows for each in moved
        },
    )


def _note(ctx: Context, ti: Any, done: Callable[[], Done]) -> None:
    from penstock.orchestration import airflow_internals

    if not airflow_internals.is_lineage_wanted():
        return
    try:
        found = done()
        before = _noted.get(task_key(ti))
        found = before[0].and_then(found) if before else found
        _noted[task_key(ti)] = found, _operator_lineage(ctx, found)
    except Exception as error:  # the work is done: whatever is wrong here must not undo it
        ctx.progress(f"what was done is not told to OpenLineage: {type(error).__name__}")


def _operator_lineage(ctx: Context, done: Done) -> Any:
    """Return what was done as the provider's own class."""
    from airflow.providers.openlineage.extractors import OperatorLineage
    from attr import define
    from openlineage.client.event_v2 import InputDataset, OutputDataset
    from openlineage.client.facet_v2 import RunFacet

    @define
    class PenstockRunFacet(RunFacet):
        pipeline: str
        fromLsn: str | None  # noqa: N815  # OpenLineage writes its names so
        uptoLsn: str  # noqa: N815
        tables: dict[str, dict[str, int]]

    facet = PenstockRunFacet(
        pipeline=ctx.name,
        fromLsn=None if done.from_lsn is None else str(done.from_lsn),
        uptoLsn=str(done.upto_lsn),
        tables={name: dict(counts) for name, counts in done.counts.items()},
    )
    landing = place(ctx.landing.uri(f"{ctx.name}/windows"))
    inputs, outputs = [_source(ctx, table) for table in done.tables.values()], list[Any]()
    if done.written:
        outputs = [
            _lake(ctx, table, source, done.written[name])
            for (name, table), source in zip(done.tables.items(), inputs, strict=True)
        ]
    elif inputs:
        outputs = [OutputDataset(*landing)]
    if done.written and inputs:
        inputs = [*inputs, InputDataset(*landing)]
    return OperatorLineage(inputs=inputs, outputs=outputs, run_facets={RUN_FACET: facet})


def _source(ctx: Context, table: TableRecord) -> Any:
    """Return a table of the source, called as Airflow's provider of PostgreSQL does."""
    from openlineage.client.event_v2 import InputDataset

    host, port = ctx.source.hosts[0]
    fields = {column.name: column.type.name for column in table.columns if not column.dropped}
    called = f"postgres://{host}:{port}", f"{ctx.source.database}.{table.qualified}"
    return InputDataset(*called, facets={"schema": _schema(fields)})


def _lake(ctx: Context, table: TableRecord, source: Any, rows: int) -> Any:
    """Return a table of the lake, called by its folder, as Spark's integration does, and linked to its name in the catalog.

    Each of its columns has the values of the one of this name at the source. The link stays when the folder changes.
    """
    from openlineage.client.event_v2 import OutputDataset
    from openlineage.client.facet_v2 import (
        column_lineage_dataset,
        output_statistics_output_dataset,
        storage_dataset,
        symlinks_dataset,
    )

    from penstock.lake.properties import folder_of

    host, port = ctx.catalog.hosts[0]
    catalog = f"jdbc:postgresql://{host}:{port}/{ctx.catalog.database}"
    target = ".".join((ctx.pipeline.lake.catalog, *table.target))
    copied = {
        column.name: column_lineage_dataset.Fields(
            inputFields=[column_lineage_dataset.InputField(source.namespace, source.name, column.name)]
        )
        for column in table.columns
        if not column.dropped
    }
    link = symlinks_dataset.Identifier(namespace=catalog, name=target, type="TABLE")
    statistics = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(rowCount=rows)
    return OutputDataset(
        *(place(folder_of(table.shows)) if table.shows else (catalog, target)),
        facets={
            "schema": _schema({column.name: column.lake_type for column in table.columns}),
            "symlinks": symlinks_dataset.SymlinksDatasetFacet(identifiers=[link]),
            "storage": storage_dataset.StorageDatasetFacet(storageLayer=_STORAGE, fileFormat="parquet"),
            "columnLineage": column_lineage_dataset.ColumnLineageDatasetFacet(fields=copied),
        },
        outputFacets={"outputStatistics": statistics},
    )


def _schema(fields: Mapping[str, str]) -> Any:
    from openlineage.client.facet_v2 import schema_dataset

    listed = [schema_dataset.SchemaDatasetFacetFields(name=name, type=kind) for name, kind in fields.items()]
    return schema_dataset.SchemaDatasetFacet(fields=listed)


def place(uri: str) -> tuple[str, str]:
    """Return namespace and name of a folder by OpenLineage's conventions for files and object stores."""
    parts = urlsplit(uri)
    if parts.scheme in ("", FILE):
        return FILE, parts.path.rstrip("/")
    scheme = "s3" if parts.scheme in ("s3a", "s3n") else parts.scheme
    return f"{scheme}://{parts.netloc}", parts.path.strip("/")

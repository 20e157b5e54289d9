"""What a task has read and written, as datasets that OpenLineage knows, with the LSNs and rows between: plain data.

It is noted only where the OpenLineage provider listens, and its facets are made in `lineage_facets.py` when it asks. No
failure of it is a failure of the task.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from penstock.flow.capture.run import CaptureReport
from penstock.flow.context import Context
from penstock.lake.names import folder_of
from penstock.ledger.records import CutRecord, TableWork
from penstock.ledger.table_records import TableRecord
from penstock.lsn import Lsn
from penstock.orchestration.airflow_internals import is_lineage_wanted

FILE = "file"


@dataclass(frozen=True, slots=True)
class Dataset:
    """Name one dataset by OpenLineage's conventions; `fields` are its columns with their types.

    `copies` is the dataset of which each field has the values of the one with the same name; `link` is the table's name in its
    catalog, which stays when its folder changes.
    """

    namespace: str
    name: str
    fields: tuple[tuple[str, str], ...] = ()
    copies: Dataset | None = None
    link: tuple[str, str] | None = None
    rows: int | None = None


@dataclass(frozen=True, slots=True)
class Lineage:
    """Say what one task has done: `tables` has the counts per table."""

    pipeline: str
    inputs: tuple[Dataset, ...]
    outputs: tuple[Dataset, ...]
    from_lsn: Lsn | None
    upto_lsn: Lsn
    tables: Mapping[str, Mapping[str, int]]

    def and_then(self, later: Lineage) -> Lineage:
        """Return this and what the same task did after it."""
        added = {name: dict(counts) for name, counts in self.tables.items()}
        for name, counts in later.tables.items():
            known = added.setdefault(name, {})
            added[name] = {
                kind: count + (0 if kind == "rows" else known.get(kind, 0)) for kind, count in counts.items()
            }
        return replace(
            later,
            inputs=_joined(self.inputs, later.inputs),
            outputs=_joined(self.outputs, later.outputs),
            from_lsn=self.from_lsn,
            tables=added,
        )


_noted: dict[tuple[str, str, str], Lineage] = {}


def noted_by(ti: Any) -> Lineage | None:
    """Return what a task of this process has noted."""
    return _noted.get(_key(ti))


def captured(ctx: Context, ti: Any, report: CaptureReport) -> None:
    """Note what a run of capture has landed."""
    _note(ctx, ti, lambda: _captured(ctx, report))


def published(ctx: Context, ti: Any, cut: CutRecord, moved: Sequence[TableWork]) -> None:
    """Note what a cut has brought to the lake."""
    _note(ctx, ti, lambda: _published(ctx, cut, {table.qualified: table for table in moved}))


def _captured(ctx: Context, report: CaptureReport) -> Lineage:
    known = {table.oid: table for table in ctx.ledger.tables.all(ctx.name)}
    changes = [(known[oid], count) for oid, count in report.changes_of.items() if oid in known]
    return Lineage(
        ctx.name,
        inputs=tuple(source_dataset(ctx, table) for table, _ in changes),
        outputs=(landing_dataset(ctx),) if changes else (),
        from_lsn=report.windows[0].from_lsn,
        upto_lsn=report.upto,
        tables={table.qualified: {"changes": count} for table, count in changes},
    )


def _published(ctx: Context, cut: CutRecord, moved: Mapping[str, TableWork]) -> Lineage:
    known = {table.qualified: table for table in ctx.ledger.tables.all(ctx.name)}
    before = [each.lsn for each in ctx.ledger.merges.cuts(ctx.name, limit=2) if each.lsn < cut.lsn]
    sources = {name: source_dataset(ctx, known[name]) for name in moved if name in known}
    return Lineage(
        ctx.name,
        inputs=(*sources.values(), landing_dataset(ctx)) if sources else (),
        outputs=tuple(lake_dataset(ctx, known[name], moved[name], source) for name, source in sources.items()),
        from_lsn=before[0] if before else None,
        upto_lsn=cut.lsn,
        tables={name: {**each.changes, "rows": each.rows} for name, each in moved.items()},
    )


def source_dataset(ctx: Context, table: TableRecord) -> Dataset:
    """Name a table of the source as Airflow's provider of PostgreSQL does."""
    host, port = ctx.source.hosts[0]
    fields = tuple((column.name, column.type.name) for column in table.columns if not column.dropped)
    return Dataset(f"postgres://{host}:{port}", f"{ctx.source.database}.{table.qualified}", fields)


def landing_dataset(ctx: Context) -> Dataset:
    """Name the folder of the pipeline's windows."""
    return Dataset(*place(ctx.landing.uri(f"{ctx.name}/windows")))


def lake_dataset(ctx: Context, table: TableRecord, moved: TableWork, source: Dataset) -> Dataset:
    """Name a table of the lake by its folder, as Spark's integration does, linked to its name in the catalog."""
    host, port = ctx.catalog.hosts[0]
    catalog = f"jdbc:postgresql://{host}:{port}/{ctx.catalog.database}"
    target = ".".join((ctx.pipeline.lake.catalog, *table.target))
    fields = tuple((column.name, column.lake_type) for column in table.columns)
    copied = not any(moved.changes.values())
    return Dataset(
        *(place(folder_of(table.shows)) if table.shows else (catalog, target)),
        fields=fields,
        copies=source,
        link=(catalog, target),
        rows=moved.rows if copied else moved.inserts + moved.updates,
    )


def place(uri: str) -> tuple[str, str]:
    """Return namespace and name of a folder by OpenLineage's conventions for files and object stores."""
    parts = urlsplit(uri)
    if parts.scheme in ("", FILE):
        return FILE, parts.path.rstrip("/")
    scheme = "s3" if parts.scheme in ("s3a", "s3n") else parts.scheme
    return f"{scheme}://{parts.netloc}", parts.path.strip("/")


def _note(ctx: Context, ti: Any, lineage: Callable[[], Lineage]) -> None:
    if not is_lineage_wanted():
        return
    try:
        found = lineage()
    except Exception as error:  # the work is done: whatever is wrong here must not undo it
        ctx.progress(f"what was done is not told to OpenLineage: {type(error).__name__}")
        return
    before = _noted.get(_key(ti))
    _noted[_key(ti)] = before.and_then(found) if before else found


def _key(ti: Any) -> tuple[str, str, str]:
    return ti.dag_id, ti.run_id, ti.task_id


def _joined(first: Iterable[Dataset], second: Iterable[Dataset]) -> tuple[Dataset, ...]:
    found = {(each.namespace, each.name): each for each in first}
    for each in second:
        known = found.get((each.namespace, each.name))
        rows = each.rows if known is None or None in (known.rows, each.rows) else (known.rows or 0) + (each.rows or 0)
        found[each.namespace, each.name] = replace(each, rows=rows)
    return tuple(found.values())

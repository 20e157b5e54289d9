"""Source against lake after a round: every table that the pipeline calls ready has to be equal, under its own name.

What is compared is read from the catalog here, by name, not by the pipeline's code; rows are compared by
`penstock.compare.rows`, which shares nothing with the way by which rows came into the lake.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.compare.lake_reader import lake_reader
from penstock.compare.report import ComparedTable
from penstock.compare.rows import compare_table
from penstock.errors import PenstockError
from penstock.ledger.table_records import TableRecord
from penstock.source.text_rows import rendered, rendered_rows
from tests.pipeline_env import PipelineEnv
from torture.model import Model, Table

SECONDS = 3600
"""So long may the source be read."""
ANONYMOUS = "a table that the source does not have under this name"


def ready(env: PipelineEnv) -> list[TableRecord]:
    """Return the tables that the pipeline vouches for."""
    found = env.ctx.ledger.tables.all(env.name)
    return [table for table in found if table.state == "ready" and table.left_lsn is None]


def compare(env: PipelineEnv, model: Model) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each ready table, by the name that readers know, and what is wrong with it (nothing: equal)."""
    ctx = env.ctx
    with (
        rendered(ctx.reader, seconds=SECONDS, what="torture") as texts,
        lake_reader(ctx.pipeline.lake.catalog, ctx.catalog) as lake,
    ):
        for record in ready(env):
            name = record.target[-1]
            source = _source(model, record)
            if source is None:
                yield f"public.{name}", (f"the lake shows {'.'.join(record.target)} as ready, {ANONYMOUS}",)
                continue
            asked = _asked(model, source, record)
            try:
                found = compare_table(
                    asked,
                    lambda table, columns: rendered_rows(texts, table.relations, columns, table.where, table.part),
                    lake.table(record.target),
                )
            except PenstockError as error:
                yield f"public.{name}", (f"cannot be compared: {error}",)
                continue
            yield f"public.{name}", () if found.equal else tuple(found.lines())


def _source(model: Model, record: TableRecord) -> Table | None:
    """Return the source table that a reader of this target expects to see: the one of its name.

    A table that waits for a name, which a paused one has still, is shown under its old one.
    """
    if record.renamed_to is not None:
        return model.by_name.get((record.schema, record.name))
    named = [table for table in model.roots if table.name.replace(".", "_") == record.target[-1]]
    exact = [table for table in named if table.name == record.name]
    return (exact or named or [None])[0]  # type: ignore[list-item]


def _asked(model: Model, table: Table, record: TableRecord) -> ComparedTable:
    logged = [leaf for leaf in model.leaves(table) if leaf.persistence == "p"]
    return ComparedTable(
        schema=table.schema,
        name=table.name,
        target=record.target,
        columns=tuple(column.name for column in table.columns if not column.generated),
        key=frozenset(table.key),
        heaps=tuple((leaf.schema, leaf.name) for leaf in logged),
        kept=frozenset(column.name for column in record.columns if column.dropped),
    )

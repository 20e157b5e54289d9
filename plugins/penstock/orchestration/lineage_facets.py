"""A task's lineage in the words of OpenLineage. Its packages are imported when its provider asks, and by nobody else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk import DAG

if TYPE_CHECKING:
    from penstock.orchestration.lineage import Dataset, Lineage

RUN_FACET = "penstock_run"
_STORAGE = "iceberg"


def attach(dag: DAG) -> None:
    """Let the OpenLineage provider, where there is one, ask every task of a DAG for its lineage."""
    for each in dag.tasks:
        each.get_openlineage_facets_on_complete = _facets


def _facets(ti: Any) -> Any:
    """Return what a task has noted as the provider wants it, None where it noted nothing."""
    from penstock.orchestration import lineage

    found = lineage.noted_by(ti)
    return None if found is None else operator_lineage(found)


def operator_lineage(found: Lineage) -> Any:
    """Return a lineage as the provider's own class."""
    from airflow.providers.openlineage.extractors import OperatorLineage  # it may not be installed
    from attr import define
    from openlineage.client.facet_v2 import RunFacet

    @define
    class PenstockRunFacet(RunFacet):
        pipeline: str
        fromLsn: str | None  # noqa: N815  # OpenLineage writes its names so
        uptoLsn: str  # noqa: N815
        tables: dict[str, dict[str, int]]

    facet = PenstockRunFacet(
        pipeline=found.pipeline,
        fromLsn=None if found.from_lsn is None else str(found.from_lsn),
        uptoLsn=str(found.upto_lsn),
        tables={name: dict(counts) for name, counts in found.tables.items()},
    )
    return OperatorLineage(
        inputs=[_input(each) for each in found.inputs],
        outputs=[_output(each) for each in found.outputs],
        run_facets={RUN_FACET: facet},
    )


def _input(dataset: Dataset) -> Any:
    from openlineage.client.event_v2 import InputDataset

    return InputDataset(dataset.namespace, dataset.name, facets=_schema(dataset))


def _output(dataset: Dataset) -> Any:
    from openlineage.client.event_v2 import OutputDataset
    from openlineage.client.facet_v2 import (
        column_lineage_dataset,
        output_statistics_output_dataset,
        storage_dataset,
        symlinks_dataset,
    )

    facets, written = _schema(dataset), {}
    if dataset.link is not None:
        identifier = symlinks_dataset.Identifier(namespace=dataset.link[0], name=dataset.link[1], type="TABLE")
        facets["symlinks"] = symlinks_dataset.SymlinksDatasetFacet(identifiers=[identifier])
        facets["storage"] = storage_dataset.StorageDatasetFacet(storageLayer=_STORAGE, fileFormat="parquet")
    if dataset.copies is not None:
        whence, known = dataset.copies, {name for name, _ in dataset.copies.fields}
        facets["columnLineage"] = column_lineage_dataset.ColumnLineageDatasetFacet(
            fields={
                name: column_lineage_dataset.Fields(
                    inputFields=[column_lineage_dataset.InputField(whence.namespace, whence.name, name)]
                )
                for name, _ in dataset.fields
                if name in known
            }
        )
    if dataset.rows is not None:
        statistics = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(rowCount=dataset.rows)
        written["outputStatistics"] = statistics
    return OutputDataset(dataset.namespace, dataset.name, facets=facets, outputFacets=written)


def _schema(dataset: Dataset) -> dict[str, Any]:
    from openlineage.client.facet_v2 import schema_dataset

    if not dataset.fields:
        return {}
    fields = [schema_dataset.SchemaDatasetFacetFields(name=name, type=kind) for name, kind in dataset.fields]
    return {"schema": schema_dataset.SchemaDatasetFacet(fields=fields)}

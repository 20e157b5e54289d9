"""What an operator wants of one table: the pipeline's own settings, or those of the first entry that names the table."""

from __future__ import annotations

from penstock.config.model import OnChange, Pipeline
from penstock.source.patterns import chosen_by


def on_change(pipeline: Pipeline, schema: str, name: str) -> OnChange:
    """Return what follows when a table is changed in a way that the stream does not carry."""
    for policy in pipeline.tables.policies:
        if chosen_by(policy)(schema, name):
            return policy.on_change
    return pipeline.tables.on_change


def any_copied(pipeline: Pipeline) -> bool:
    """Return whether there is a table that is copied again by itself after such a change."""
    wanted = [pipeline.tables.on_change, *(policy.on_change for policy in pipeline.tables.policies)]
    return any(each != "pause" for each in wanted)

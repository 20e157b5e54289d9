"""Pipelines and contexts as Airflow sees them: files at parse time, connections at run time."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path

from airflow.sdk import BaseHook, get_parsing_context

from penstock.config import Pipeline, load_pipeline
from penstock.connections import Connection
from penstock.errors import ConfigError
from penstock.flow.context import Context

log = logging.getLogger("penstock")


def home() -> Path:
    """Return the project folder: `PENSTOCK_HOME`, else the checkout that holds this file."""
    return Path(os.environ.get("PENSTOCK_HOME", Path(__file__).resolve().parents[3]))


def folder() -> Path:
    """Return the folder of pipeline files: `PENSTOCK_PIPELINES`, else `include/pipelines`."""
    return Path(os.environ.get("PENSTOCK_PIPELINES", home() / "include" / "pipelines"))


def environment() -> dict[str, str]:
    """Return what `${NAME}` in a pipeline file may name: this process's variables, `PENSTOCK_HOME` always among them."""
    return {"PENSTOCK_HOME": str(home()), **os.environ}


def pipelines(verb: str) -> Iterator[Pipeline]:
    """Yield the pipelines for which a DAG file must build `<pipeline>.<verb>` now.

    While a task runs only its own DAG is built. A file that cannot be read is left out here, so that one bad
    file does not take every pipeline's DAGs away; `dags/pipeline_files.py` shows its error in the UI.
    """
    wanted = get_parsing_context().dag_id
    return (each for each in _readable() if wanted in (None, f"{each.name}.{verb}"))


def _readable() -> Iterator[Pipeline]:
    for path in sorted(folder().glob("*.yaml")):
        try:
            yield load_pipeline(path, environment())
        except ConfigError as error:
            log.warning("%s", error)


def context(pipeline: Pipeline) -> Context:
    """Return the pipeline's context inside a running task."""
    ours = {key: value for key, value in os.environ.items() if key.startswith("PENSTOCK_")}
    return Context(pipeline, connection, home(), ours, log.info)


def find_context(name: str) -> Context:
    """Return the context of a pipeline by its name; raises ConfigError when no file that can be read defines it."""
    for pipeline in _readable():
        if pipeline.name == name:
            return context(pipeline)
    raise ConfigError(
        "config-invalid",
        f"expected a file in {folder()} that defines pipeline {name} and can be read, found none; "
        "write it, or mend the file that the warnings above name",
    )


def connection(conn_id: str) -> Connection:
    """Return an Airflow connection as ours; raises ConfigError("connection-missing")."""
    try:
        found = BaseHook.get_connection(conn_id)
    except Exception as error:  # Airflow raises different classes per secrets backend
        raise ConfigError(
            "connection-missing", f"expected an Airflow connection named {conn_id}: {type(error).__name__}"
        ) from None
    options = {key: str(value) for key, value in found.extra_dejson.items()}
    return Connection(
        id=conn_id,
        host=found.host or "",
        port=found.port or 5432,
        user=found.login or "",
        password=found.password or "",
        database=found.schema or "",
        options=options,
    )

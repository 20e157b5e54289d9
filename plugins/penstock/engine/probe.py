"""Whether the engine and the lake's store work at all: a file of one row is written, read and deleted by the engine's own means."""

from __future__ import annotations

import uuid

import duckdb

from penstock.engine import duck
from penstock.engine.duck import literal
from penstock.engine.failure import EngineFailure
from penstock.engine.files import Files
from penstock.engine.order import Resources


def probe(files: Files, folder: str) -> None:
    """Write a file below a folder of the lake, read it and delete it; raises EngineFailure."""
    location = f"{folder.rstrip('/')}/data/{uuid.uuid4()}-probe.parquet"
    files.lake.make_folder(location)
    try:
        with duck.connect(Resources(), files) as db:
            db.execute(f"copy (select 1 as one) to {literal(files.lake.path(location))} (format parquet)")
            db.row(f"select one from read_parquet({db.stored([location])})")
    except duckdb.Error as error:
        raise EngineFailure.of(error) from None
    files.lake.delete(location)

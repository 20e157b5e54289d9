"""The tables of a pipeline as choices of a trigger's form: slot health and bootstrap leave their names in a small file.

A parse of a DAG file reads that file and asks no database. Where there is none, the names are those that the pipeline's
patterns spell out. Choices are a help: what is typed or sent besides is taken, and refused by the task if it is no table.
"""

import json
import os
from pathlib import Path
from secrets import token_hex
from typing import Any

from airflow.sdk import Param

from penstock.config.model import Pipeline
from penstock.flow.context import Context

_ITEM = {"type": "string", "pattern": r"^.+\..+$"}


def tables_param(pipeline: Pipeline, description: str) -> Param:
    """Return the parameter for several tables, empty at first; a form that is cleared again sends null."""
    named = {"type": ["null", "array"], "items": _ITEM, "uniqueItems": True, "description": description}
    return Param([], **named, **_examples(pipeline))


def table_param(pipeline: Pipeline, description: str) -> Param:
    """Return the parameter for one table or none."""
    return Param(None, type=["null", "string"], description=description, **_examples(pipeline))


def note(ctx: Context) -> None:
    """Leave the names of the pipeline's tables for the DAG files; a folder that cannot be written to stops nothing."""
    names = sorted(table.qualified for table in ctx.ledger.tables.all(ctx.name) if table.state != "dropped")
    if names == _noted(ctx.name):
        return
    try:
        _replace(_file(ctx.name), json.dumps(names))
    except OSError as error:
        ctx.progress(f"the forms of the DAGs do not get the names of the tables: {error.strerror}")


def _examples(pipeline: Pipeline) -> dict[str, Any]:
    """Return the choices; none, rather than an empty list, of which nothing could be chosen."""
    spelt = [each for each in pipeline.tables.include if "*" not in each and '"' not in each]
    names = _noted(pipeline.name) or sorted(spelt)
    return {"examples": names} if names else {}


def _noted(pipeline: str) -> list[str] | None:
    try:
        found = json.loads(_file(pipeline).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    is_list = isinstance(found, list) and all(isinstance(each, str) for each in found)
    return found if is_list else None


def _replace(file: Path, text: str) -> None:
    """Write a file so that a reader sees the old one or the new one."""
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(f".{file.name}.{token_hex(4)}")
    try:
        draft.write_text(text, encoding="utf-8")
        draft.chmod(0o644)
        draft.replace(file)
    finally:
        draft.unlink(missing_ok=True)


def _file(pipeline: str) -> Path:
    home = Path(os.environ.get("AIRFLOW_HOME", "~/airflow")).expanduser()
    return home / "penstock" / f"{pipeline}.tables.json"

"""Where the project and the pipeline files lie, for Airflow and the command line alike."""

import os
from pathlib import Path


def home() -> Path:
    """Return the project folder: `PENSTOCK_HOME`, else the checkout that holds this file."""
    return Path(os.environ.get("PENSTOCK_HOME", Path(__file__).resolve().parents[3]))


def folder() -> Path:
    """Return the folder of pipeline files: `PENSTOCK_PIPELINES`, else `include/pipelines`."""
    return Path(os.environ.get("PENSTOCK_PIPELINES", home() / "include" / "pipelines"))


def environment() -> dict[str, str]:
    """Return what `${NAME}` in a pipeline file may name: this process's variables, `PENSTOCK_HOME` always among them."""
    return {"PENSTOCK_HOME": str(home()), **os.environ}

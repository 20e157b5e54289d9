"""Where the project and the pipeline files lie."""

from __future__ import annotations

import os
from pathlib import Path


def home() -> Path:
    """Return the project folder."""
    return Path(os.environ.get("PENSTOCK_HOME", Path(__file__).resolve().parents[3]))


def folder() -> Path:
    """Return the folder of pipeline files."""
    return Path(os.environ.get("PENSTOCK_PIPELINES", home() / "include" / "pipelines"))


def environment() -> dict[str, str]:
    """Return what `${NAME}` in a pipeline file may name."""
    return {"PENSTOCK_HOME": str(home()), **os.environ}

"""The runbooks in the terminal: one page, or the list of all."""

from __future__ import annotations

from pathlib import Path

import typer

from penstock.cli import printing
from penstock.conditions import CONDITIONS, runbook
from penstock.config.paths import home
from penstock.config.store_options import nearest


def page(slug: str) -> Path:
    """Return where the page of a condition lies; raises BadParameter."""
    wanted = slug.strip("[]").removesuffix(".md").rpartition("/")[2]
    if wanted not in CONDITIONS:
        said = nearest(wanted, CONDITIONS)
        hint = said if said.startswith("did") else "penstock runbook lists all"
        raise typer.BadParameter(f"expected the name of a condition, got {slug!r}; {hint}")
    path = home() / runbook(wanted)
    if not path.is_file():
        raise typer.BadParameter(f"expected the runbook at {path}, found none; set PENSTOCK_HOME to the project folder")
    return path


def show(path: Path, pipeline: str | None) -> None:
    """Print a page, with the pipeline's name in its commands."""
    printing.show_document(path, {} if pipeline is None else {"<pipeline>": pipeline})


def show_index() -> None:
    """Print every condition with what it means."""
    printing.show_table(("runbook", "meaning"), ((slug, each.meaning) for slug, each in CONDITIONS.items()))

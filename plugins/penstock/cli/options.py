"""The arguments and options that verbs share. Nothing heavy is imported here: `--help` and completion are to answer at once."""

from __future__ import annotations

from typing import Annotated, Literal

import typer


def pipeline_names(incomplete: str) -> list[str]:
    """Return the names of the folder's pipeline files for a shell that completes one; a file's name is taken for the pipeline's."""
    from penstock.config.paths import folder

    return sorted(path.stem for path in folder().glob("*.yaml") if path.stem.startswith(incomplete))


def slugs(incomplete: str) -> list[str]:
    """Return the conditions that have a runbook."""
    from penstock.conditions import CONDITIONS

    return [slug for slug in CONDITIONS if slug.startswith(incomplete)]


_PIPELINE = "The pipeline's name, or the path of its file."
Name = Annotated[str, typer.Argument(help=_PIPELINE, metavar="pipeline", autocompletion=pipeline_names)]
OneOrAll = Annotated[
    str | None, typer.Argument(help=_PIPELINE, metavar="pipeline", autocompletion=pipeline_names, show_default=False)
]
All = Annotated[
    bool, typer.Option("--all", help="Every pipeline, one after the other; one that fails keeps no other waiting.")
]
Json = Annotated[bool, typer.Option("--json", help="Print plain data for other tools.")]
OnlyTables = Annotated[
    list[str] | None, typer.Option("--table", help="Only this table, as schema.table; may be repeated.")
]
TableNames = Annotated[list[str] | None, typer.Option("--table", help="A table, as schema.table; may be repeated.")]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run/--no-dry-run", help="Only say what would be done, and change nothing; --no-dry-run does it."
    ),
]
"""One flag for every verb that has it: on for those that repair, off for everyday work. What the verb would refuse it refuses dry, too."""
Mode = Literal["whole", "sample"]

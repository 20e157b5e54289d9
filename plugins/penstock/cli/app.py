"""Run the work of Penstock's DAGs from a shell, with or without Airflow.

Connections come from the environment in Airflow's own form, AIRFLOW_CONN_<ID>. Results are printed on the standard output,
progress and errors on the standard error output.
"""

import platform
from typing import Annotated

import typer

from penstock import __version__
from penstock.cli import verbs_look, verbs_prepare, verbs_repair, verbs_work
from penstock.cli.options import add

_PARTS = ("apache-airflow", "pyspark", "pyiceberg", "duckdb")
app = typer.Typer(
    name="penstock",
    no_args_is_help=True,
    help=__doc__,
    pretty_exceptions_enable=False,
    epilog="The exit statuses are in docs/commands.md. A runbook for every error: penstock runbook <slug>",
)
for panel, verbs in (
    ("Prepare", verbs_prepare.VERBS),
    ("Look", verbs_look.VERBS),
    ("Everyday work", verbs_work.VERBS),
    ("Repair", verbs_repair.VERBS),
):
    for verb in verbs:
        add(app, verb, panel)


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib import metadata  # noqa: PLC0415  # as in the verbs' modules

        versions = ", ".join(f"{name} {metadata.version(name)}" for name in _PARTS)
        typer.echo(f"penstock {__version__} (Python {platform.python_version()}, {versions})")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Hold what can be given without a verb; `help` is the module's own."""


def main() -> None:
    """Run the command line."""
    app(prog_name="penstock")

"""What verbs share: arguments and options, an example of each, and the exit statuses.

Nothing heavy is imported here: `--help` and completion are to answer at once. A script can tell by a status what to do next without
reading the message.
"""

from collections.abc import Iterable
from enum import IntEnum
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperCommand

from penstock.conditions import Directive
from penstock.errors import PenstockError


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
EXAMPLES = {
    "init": "penstock init shop --connection shop_source --include 'sales.*'",
    "validate": "penstock validate",
    "check": "penstock check shop",
    "start": "penstock start shop",
    "plan-migration": "penstock plan-migration shop migrations/0042_prices.sql",
    "ddl-trigger": "penstock ddl-trigger shop | psql -U postgres shop",
    "package": "penstock package /opt/penstock/penstock.zip",
    "list": "penstock list",
    "status": "penstock status shop",
    "health": "penstock health --all",
    "verify": "penstock verify shop --table sales.orders",
    "runbook": "penstock runbook slot-lost shop",
    "bootstrap": "penstock bootstrap shop",
    "capture": "penstock capture shop",
    "merge": "penstock merge shop --force",
    "changelog": "penstock changelog shop --from 2026-11-21 --to 2026-11-22",
    "maintain": "penstock maintain shop --dry-run",
    "resume": "penstock resume shop --table sales.orders",
    "resync": "penstock resync shop --table sales.orders --no-dry-run",
    "replay": "penstock replay shop --table sales.orders --shadow before",
    "abandon": "penstock abandon shop --table sales.orders --no-dry-run",
    "recover": "penstock recover shop",
    "skip-transaction": "penstock skip-transaction shop",
    "teardown": "penstock teardown shop",
}


class Status(IntEnum):
    """Name an exit status."""

    DONE = 0
    CRASHED = 1
    USAGE = 2
    REFUSED = 3
    FOUND = 4
    RETRY = 5
    DECIDE = 6
    INTERRUPTED = 130


MEANINGS = {
    Status.DONE: "done; what was looked at is as it should be",
    Status.CRASHED: "an error that Penstock does not know: its traceback is printed, please report it",
    Status.USAGE: "the command line is wrong: an unknown verb or option, no pipeline",
    Status.REFUSED: "the call was refused and nothing was changed: a pipeline file, a connection, a name, the wrong time",
    Status.FOUND: "the verb looked, and found something: an error of `check` or `validate`, an alarm of `health` or `status`, a difference of `verify`",
    Status.RETRY: "it did not succeed this time, nothing is lost: run it again later",
    Status.DECIDE: "a pipeline is halted, a table is paused, or another thing waits for a person: the message names the runbook",
    Status.INTERRUPTED: "Ctrl-C: run it again to continue",
}
"""What each status means, for the page of commands."""
PLAN_MIGRATION = {
    0: "free: the lake follows without a copy",
    1: "tables are copied again",
    2: "tables pause, or the lake loses data",
    3: "nothing can be said, whatever the reason",
}
"""The one verb with statuses of its own: a verdict for CI."""
NOT_TRIED = 3
_OF_DIRECTIVE = {Directive.RETRY: Status.RETRY, Directive.FAIL: Status.REFUSED}
_FINDINGS = ("verify-differs", "verify-unreadable")
_BY_URGENCY = (Status.DONE, Status.FOUND, Status.RETRY, Status.REFUSED, Status.DECIDE)


def status_of(error: PenstockError) -> Status:
    """Return the status with which a verb ends that met this error."""
    if error.slug in _FINDINGS:
        return Status.FOUND
    return _OF_DIRECTIVE.get(error.directive, Status.DECIDE)


def worst(statuses: Iterable[Status]) -> Status:
    """Return the most urgent of some pipelines' statuses."""
    return max(statuses, key=_BY_URGENCY.index, default=Status.DONE)


class _OwnUsageError(TyperCommand):
    """End with the status of what could not be tried where any other verb ends with that of a wrong use."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the command line; raises Exit."""
        try:
            return super().parse_args(ctx, args)
        except typer.TyperException as error:
            typer.echo(f"{ctx.get_usage()}\n{error}", err=True)
            raise typer.Exit(NOT_TRIED) from None


def add(app: typer.Typer, verb: Any, panel: str) -> None:
    """Give the command line a verb, with its example at the end of its help."""
    name = verb.__name__.removesuffix("_").replace("_", "-")
    cls = _OwnUsageError if name == "plan-migration" else None
    app.command(name, cls=cls, rich_help_panel=panel, epilog=f"Example: {EXAMPLES[name]}")(verb)

"""`python -m demo`: the whole job, from nothing to `equal`; `python -m demo up`: the same, left running."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from rich.markup import escape

from demo import fresh, report
from demo.concurrent_ops import Backfill, Copies
from demo.drive import Demo
from demo.migration import Migration
from demo.verification import Verification
from penstock.errors import PenstockError
from stack import lifecycle, status
from stack.errors import StackError
from stack.paths import Project
from stack.progress import Progress

FAILED, INTERRUPTED = 1, 130

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, help=__doc__)

Captures = Annotated[int, typer.Option(min=1, help="Captures that land changes while the load continues.")]
Merges = Annotated[int, typer.Option(min=1, help="Merges that publish a cut while the load continues.")]


@contextmanager
def _command(then: str, project: Project | None = None) -> Iterator[tuple[Project, Progress]]:
    """Run a verb alone, and turn its failure into words and an exit status; `then` says how to go on."""
    project, progress = project or Project.here(), Progress()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # asked to stop is asked to clean up, by whatever signal
    try:
        with lifecycle.alone(project):
            yield project, progress
    except (StackError, PenstockError) as error:
        page = f"\nNext: {error.runbook}" if isinstance(error, PenstockError) else ""
        progress.console.print(escape(f"{error}{page}"), style="red")
        progress.console.print(escape(f"{then}."))
        raise typer.Exit(FAILED) from error
    except KeyboardInterrupt:
        progress.console.print(escape(f"Interrupted; {then}."))
        raise typer.Exit(INTERRUPTED) from None


@app.callback(invoke_without_command=True)
def main(command: typer.Context, captures: Captures = 3, merges: Merges = 1) -> None:
    """Mirror a live database into the lake, compare the two, report, and stop everything again."""
    if command.invoked_subcommand is None:
        whole_job(Project.here(), captures, merges)


@app.command()
def cluster(captures: Captures = 3, merges: Merges = 1) -> None:
    """Do the same on a cluster of this machine: Spark standalone with two workers, all files in an object store."""
    whole_job(Project.here().clustered(), captures, merges)


def whole_job(chosen: Project, captures: int, merges: int) -> None:
    """Bring a stack up, do the whole job on it, say the verdict, and stop everything."""
    with _command("the next `make demo` begins afresh, and `make up` goes on with what is there", chosen) as (
        project,
        progress,
    ):
        try:
            demo = Demo(fresh.silent_stack(project, progress), progress)
            verdict = run(demo, captures, merges)
        finally:
            lifecycle.down(project, progress)
    progress.console.print(verdict)


def run(demo: Demo, captures: int, merges: int) -> str:
    """Do the whole job on a running stack; return the verdict, or raise StackError."""
    demo.begin()
    demo.start_load()
    demo.bootstrap()
    copies = Copies(demo)
    copies.begin()
    demo.let_schedules_run()
    migration = Migration(demo)
    migration.run()
    demo.live(captures, merges)
    copies.build()
    goal = demo.stop_load()
    backfill, verification = Backfill(demo), Verification(demo)
    verification.begin()
    demo.land(goal)
    backfill.begin()
    copies.end()
    demo.catch_up(goal)
    migration.end()
    verification.end()
    backfill.end()
    demo.pause_schedules()
    found, at = demo.compare(), demo.cut
    demo.await_last_runs()
    if not found.equal:
        came = "\n".join(line for each in found.tables if not each.equal for line in each.lines())
        expected = f"every table of the lake to equal the source at {at}"
        raise StackError(expected, came, "`make up` starts everything again; penstock verify shop --now compares again")
    demo.progress.console.print(report.table(demo.figures()))
    return f"equal: {len(found.tables)} tables, {found.rows} rows, lake = source at {at}"


@app.command()
def up() -> None:
    """Leave everything running: what runs stays, what was begun goes on where it stopped, the rest is made."""
    with _command("`make up` goes on from here; `make down` stops what runs") as (project, progress):
        again = fresh.begun_mark(project).exists()
        demo = Demo(fresh.up(project, progress, again=again), progress)
        status.welcome(demo.stack, progress.console)
        if not again:
            demo.begin()
        demo.start_load()
        if not demo.is_bootstrapped():
            demo.bootstrap()
        demo.let_schedules_run()
        progress.console.print(
            "The load continues, captures and merges run by schedule. `make status` says how it is and where it is to be "
            "seen, `make down` stops everything."
        )


if __name__ == "__main__":
    app()

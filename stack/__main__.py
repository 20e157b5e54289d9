"""`python -m stack <verb>`: the local stack from a shell. The Makefile's targets are these verbs."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer
from rich.markup import escape

from stack import lifecycle
from stack import status as status_of
from stack.errors import StackError
from stack.paths import Project
from stack.progress import Progress
from stack.stack import Stack

INTERRUPTED = 130

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, help=__doc__)


@contextmanager
def _command(project: Project) -> Iterator[Progress]:
    """Run a verb alone, and turn its failure into words and an exit status."""
    progress = Progress()
    try:
        with lifecycle.alone(project):
            yield progress
    except StackError as error:
        progress.console.print(escape(str(error)), style="red")
        raise typer.Exit(1) from error
    except KeyboardInterrupt:
        progress.console.print("Interrupted. The same command goes on from here; `make down` stops what runs.")
        raise typer.Exit(INTERRUPTED) from None


@app.command()
def setup(
    *,
    cluster: bool = typer.Option(False, help="Fetch the jars of a cluster too."),
    class_archive: bool = typer.Option(True, help="Archive Spark's classes, for quick starts on this machine."),
) -> None:
    """Make what needs no server: Java, jars, Spark's settings, the packed library."""
    project = Project.here()
    with _command(project) as progress:
        lifecycle.set_up(project, progress, archive=class_archive)
        if cluster:
            lifecycle.fetch_cluster(project, progress)


@app.command()
def up(*, servers_only: bool = typer.Option(False, help="Leave Airflow out.")) -> None:
    """Start the two servers and Airflow, and leave them running."""
    project = Project.here()
    with _command(project) as progress:
        if servers_only:
            lifecycle.start_servers(project, progress)
        else:
            stack = lifecycle.up(project, progress)
            status_of.welcome(stack, progress.console)


@app.command()
def down() -> None:
    """Stop everything that was started."""
    project = Project.here()
    with _command(project) as progress:
        lifecycle.down(project, progress)
        progress.console.print("Nothing of the local stack runs.")


@app.command()
def clean() -> None:
    """Stop everything and delete what was generated, all data included."""
    project = Project.here()
    with _command(project) as progress:
        lifecycle.clean(project, progress)


@app.command()
def status() -> None:
    """Show the UI's address and login, what runs, where, which log has more, and how the pipelines are."""
    project = Project.here()
    cluster = Stack.load(project.clustered()) if project.clustered().state.exists() else None
    status_of.show(Stack.load(project), cluster, Progress().console)


@app.command()
def env() -> None:
    """Print the shell file that leads `penstock` to the stack (it names passwords)."""
    stack = Stack.load()
    stack.write_environment()
    sys.stdout.write(stack.project.environment.read_text())


if __name__ == "__main__":
    app()

"""`python -m stack <verb>`: the local stack from a shell. The Makefile's targets are these verbs."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer
from rich.console import Console
from rich.markup import escape

from stack import lifecycle
from stack.errors import StackError
from stack.paths import Project
from stack.ports import LOOPBACK
from stack.progress import Progress
from stack.servers.postgres import Server
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
        progress.console.print("Interrupted. The same command continues from here; `make down` stops what runs.")
        raise typer.Exit(INTERRUPTED) from None


@app.command()
def setup(*, cluster: bool = typer.Option(False, help="Fetch the jars of a cluster too.")) -> None:
    """Make what needs no server: Java, jars, Spark's settings, the packed library."""
    project = Project.here()
    with _command(project) as progress:
        lifecycle.set_up(project, progress)
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
            _welcome(stack, progress.console)


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
    """Show what runs, where, and which log has more."""
    project = Project.here()
    rows = [("part", "state", "address", "log"), *_rows(Stack.load(project))]
    if project.clustered().state.exists():
        cluster_rows = [(f"cluster/{part}", *facts) for part, *facts in _rows(Stack.load(project.clustered()))]
        rows += cluster_rows if any(row[1].startswith(("running", "not healthy")) for row in cluster_rows) else []
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


@app.command()
def env() -> None:
    """Print the shell file that leads `penstock` to the stack (it names passwords)."""
    stack = Stack.load()
    stack.write_environment()
    sys.stdout.write(stack.project.environment.read_text())


def _rows(stack: Stack) -> list[tuple[str, ...]]:
    """Return part, state, address and log of everything that a stack consists of."""
    rows: list[tuple[str, ...]] = [
        (name, _state(server), f"{LOOPBACK}:{server.port}", str(server.log))
        for name, server in (("source", stack.source), ("control", stack.control))
    ]
    rows.append(("airflow", _state_of_airflow(stack), stack.airflow.url, str(stack.project.logs)))
    addresses = stack.cluster.addresses() if stack.cluster else {}
    for session in stack.sessions():
        if session.name != stack.airflow.session.name:
            state = "running" if session.is_alive() else "ended"
            rows.append((session.name, state, addresses.get(session.name, ""), str(session.log)))
    return rows


def _state(server: Server) -> str:
    pid = server.pid()
    return f"running ({server.version}, process {pid})" if pid else "stopped"


def _state_of_airflow(stack: Stack) -> str:
    if not stack.airflow.session.is_alive():
        return "stopped"
    unhealthy = stack.airflow.api.unhealthy()
    return f"not healthy: {', '.join(unhealthy)}" if unhealthy else "running"


def _welcome(stack: Stack, console: Console) -> None:
    console.print(f"Airflow's UI: {stack.airflow.url}")
    console.print(f"Login:        {stack.airflow.api.user} / {escape(stack.secrets.airflow_login)}")
    console.print(f"A shell:      source {escape(str(stack.project.environment))}")


if __name__ == "__main__":
    app()

"""What a person is told of a stack: where its UI is and who may log in, which parts run, and how its pipelines are."""

from __future__ import annotations

from functools import partial

from rich.console import Console
from rich.markup import escape

from penstock.config.connections import Connection
from penstock.page import format
from penstock.page.pipeline import Pipeline
from penstock.page.queries import Deployment
from stack.ports import LOOPBACK
from stack.servers.postgres import Server
from stack.stack import Stack

Rows = list[tuple[str, ...]]


def welcome(stack: Stack, console: Console) -> None:
    """Say where Airflow's UI is, and the login; Airflow has to answer for that."""
    console.print(f"Airflow's UI: {stack.airflow.url}, login {_login(stack)}")
    console.print(f"The pipelines: {stack.airflow.url}/plugin/cdc")
    console.print(f"A shell:       source {escape(str(stack.project.environment))}")


def show(stack: Stack, cluster: Stack | None, console: Console) -> None:
    """Say all of it, of a stack on a cluster too."""
    rows = [("part", "state", "address", "log"), *parts(stack)]
    if cluster is not None:
        beside = [(f"cluster/{part}", *facts) for part, *facts in parts(cluster)]
        rows += beside if any(row[1].startswith(("running", "not healthy")) for row in beside) else []
    _print(rows, console)
    console.print()
    if not stack.airflow.session.is_alive():
        console.print("Nothing serves a UI: `make up` starts everything, or goes on where it stopped.")
    else:
        welcome(stack, console)
    console.print()
    if stack.control.is_running():
        _print(pipelines(stack), console)
    else:
        console.print("How the pipelines are is not known: the control server does not run.")


def parts(stack: Stack) -> Rows:
    """Return part, state, address and log of everything that a stack consists of."""
    rows: Rows = [
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


def pipelines(stack: Stack) -> Rows:
    """Return name, state, age, cut and open alarms of every pipeline, the worst first, under a head; then what cannot be read."""
    environment = stack.environment()
    resolver = partial(Connection.from_airflow_environment, environ=environment)
    found = Deployment(stack.pipelines, environment, resolver).overview()
    problems: Rows = [("", f"[{each.slug}] {each.message}") for each in found.problems]
    return [("pipeline", "state", "behind by", "cut", "alarms"), *map(_pipeline, found.pipelines), *problems]


def _pipeline(it: Pipeline) -> tuple[str, ...]:
    alarms = ", ".join(sorted({alarm.slug for alarm in it.alarms})) or "none"
    return it.name, it.state.replace("_", " "), format.age(it.freshness_seconds), str(it.cut_lsn or "none"), alarms


def _login(stack: Stack) -> str:
    return f"{stack.airflow.api.user} / {escape(stack.secrets.airflow_login)}"


def _state(server: Server) -> str:
    pid = server.pid()
    return f"running ({server.version}, process {pid})" if pid else "stopped"


def _state_of_airflow(stack: Stack) -> str:
    if not stack.airflow.session.is_alive():
        return "stopped"
    unhealthy = stack.airflow.api.unhealthy()
    return f"not healthy: {', '.join(unhealthy)}" if unhealthy else "running"


def _print(rows: Rows, console: Console) -> None:
    aligned = [row for row in rows if row[0]]
    widths = [max(map(len, column)) for column in zip(*aligned, strict=True)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)] if row[0] else [row[1]]
        console.print(escape("  ".join(cells).rstrip()))

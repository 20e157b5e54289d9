"""Start a pipeline in Airflow: by Airflow's own command line, which works wherever it can reach its metadata.

The bootstrap is triggered before anything is unpaused: the other DAGs skip their runs while one of it waits or runs.
"""

import json
import re
import subprocess
import time
from collections.abc import Mapping, Sequence

from penstock.cli.context import Answer
from penstock.cli.printing import show
from penstock.config.dags import NEEDED, STARTED
from penstock.errors import ConfigError, LedgerError
from penstock.flow.check import UNKNOWN, unless_unknown
from penstock.flow.context import Context
from penstock.polling import poll

_LOOK_AGAIN, _SAY_AGAIN = 5.0, 30.0


def start(ctx: Context) -> Answer:
    """Unpause the DAGs that belong together, and trigger the bootstrap unless it is done; repeating it changes nothing.

    Waits for Airflow to have read the pipeline's file. Raises ConfigError("airflow-unreachable").
    """
    ctx.progress(f"{ctx.name}: asks Airflow for the pipeline's DAGs")
    paused = _read_by_airflow(ctx)
    ctx.progress(
        f"{ctx.name}: Airflow shows its DAGs; asks the ledger and Airflow whether its bootstrap is done, or at work"
    )
    bootstrap = f"{ctx.name}.bootstrap"
    before = "was done before" if _is_bootstrapped(ctx) else "is at work already" if under_way(ctx) else None
    if before is None:
        ctx.progress(f"{ctx.name}: triggers {bootstrap}")
        _airflow("dags", "trigger", bootstrap)
    unpaused = [verb for verb in STARTED if paused.get(f"{ctx.name}.{verb}")]
    if unpaused:
        ctx.progress(f"{ctx.name}: unpauses {', '.join(unpaused)}")
        _airflow(
            "dags", "unpause", "--yes", "--treat-dag-id-as-regex", rf"^{re.escape(ctx.name)}\.({'|'.join(unpaused)})$"
        )
    said = f"its bootstrap {before}" if before else f"{bootstrap} is triggered"
    freed = f"unpaused {', '.join(unpaused)}" if unpaused else "no DAG was paused"
    return Answer(
        {"triggered": before is None, "unpaused": unpaused},
        lambda: show(f"{ctx.name}: {said}; {freed}. How it goes: penstock status {ctx.name}"),
    )


def _read_by_airflow(ctx: Context) -> dict[str, bool]:
    """Wait until Airflow shows the DAGs that every pipeline has; return which DAGs are paused."""
    began, said = time.monotonic(), -_SAY_AGAIN
    for _ in poll(pause=_LOOK_AGAIN):
        listed = _listed("dags", "list", "--columns", "dag_id,is_paused")
        known = {each["dag_id"]: each["is_paused"] == "True" for each in listed}
        missing = [verb for verb in NEEDED if f"{ctx.name}.{verb}" not in known]
        if not missing:
            break
        waited = time.monotonic() - began
        if waited - said >= _SAY_AGAIN:
            said = waited
            ctx.progress(
                f"{ctx.name}: waits for Airflow to have read the pipeline's file, for {waited:.0f} s; "
                f"it does not show {ctx.name}.{missing[0]} yet. Errors of files: airflow dags list-import-errors"
            )
    return known


def _is_bootstrapped(ctx: Context) -> bool:
    state = None
    with unless_unknown():
        state = ctx.ledger.pipelines.get(ctx.name).state
    return state in ("running", "halted")


def under_way(ctx: Context) -> str | None:
    """Return whether a run of the pipeline's bootstrap is running or queued, None for neither; raises ConfigError."""
    states = {run["state"] for run in _listed("dags", "list-runs", f"{ctx.name}.bootstrap")}
    return next((state for state in ("running", "queued") if state in states), None)


def starting(ctx: Context, error: LedgerError) -> Answer:
    """Say that the bootstrap of a pipeline is under way, which the ledger does not know yet; raises the error if it is not."""
    try:
        state = under_way(ctx) if error.slug in UNKNOWN else None
    except ConfigError:  # a shell without Airflow: nothing is known but what the ledger says
        state = None
    if state is None:
        raise error
    said = f"{ctx.name}: its bootstrap is {state}, and has not made its slot yet. How far it is: {ctx.name}.bootstrap in Airflow"
    return Answer({"state": "starting", "bootstrap": state}, lambda: show(said))


def _listed(*words: str) -> Sequence[Mapping[str, str]]:
    """Return what a command of Airflow's lists; lines of its log stand before the JSON, which is not there for an empty list."""
    said = _airflow(*words, "--output", "json")
    found = re.search(r"^\[\{", said, re.MULTILINE)
    listed: Sequence[Mapping[str, str]] = json.JSONDecoder().raw_decode(said, found.start())[0] if found else []
    return listed


def _airflow(*words: str) -> str:
    """Run a command of Airflow's and return what it printed; its error may hold an address, and is not repeated."""
    try:
        done = subprocess.run(["airflow", *words], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise ConfigError(
            "airflow-unreachable",
            "expected Airflow's command line on the PATH, got none; run this where Airflow is installed, "
            "or trigger and unpause the DAGs in its UI",
        ) from None
    if done.returncode:
        raise ConfigError(
            "airflow-unreachable",
            f"expected `airflow {words[0]} {words[1]}` to reach Airflow's metadata, got exit status {done.returncode}; "
            "run `airflow db check` to read why",
        )
    return done.stdout

"""The main job, driven as its user would: DAGs by Airflow's REST API, everything else read from the ledger.

Nothing here works on the pipeline itself. Whatever waits also watches: the first thing that goes wrong ends the
demo with what came and where to read on.
"""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

from demo import fresh, reading, source
from demo.fresh import NAME
from demo.report import Figures
from demo.watch import Watch
from demo.workload import Totals
from penstock.compare.report import Comparison
from penstock.config.connections import Connection
from penstock.config.model import Pipeline, load_pipeline
from penstock.flow.context import Context
from penstock.flow.verify.compare import compare
from penstock.landing.zone import LandingZone
from penstock.lsn import Lsn
from penstock.polling import poll
from stack.airflow.rest_api import AirflowApi, Json
from stack.background_process import Session
from stack.errors import StackError
from stack.progress import Progress, Step
from stack.servers.databases import SHOP, SHOP_OWNER
from stack.servers.postgres import Database
from stack.stack import Stack

POLL = 2.0


@dataclass(frozen=True)
class Demo:
    """One demo on a running stack; the public methods are its steps, in order."""

    stack: Stack
    progress: Progress

    # --- the steps -----------------------------------------------------------------------------------

    def begin(self) -> None:
        """Forget an earlier demo and make a new source; Airflow knows the DAGs, and they are silent."""
        fresh.begun_mark(self.stack.project).unlink(missing_ok=True)
        with self.progress.step("A fresh beginning") as step:
            for dag in fresh.dag_ids(self.pipeline):
                step.say(f"waiting for Airflow to read the DAG {dag}")
                self.api.wait_for_dag(dag)
            fresh.end_runs(self.api, self.pipeline)
            warehouse = LandingZone.open(self.stack.warehouse, self.stack.store_options(), self.stack.environment())
            fresh.forget(self.pipeline, self.stack.ledger_dsn(), self.context.landing, warehouse)
            size = source.create(Database(self.stack.source, SHOP), progress=step.say)
            step.result = f"{size.tables} tables with {size.rows:,} rows at the source"
        fresh.begun_mark(self.stack.project).touch()
        _ = self.watch  # runs from now on are ours

    def start_load(self) -> None:
        """Start the load in the background, unless it runs; it continues until `stop_load` or `make down`."""
        with self.progress.step("The live load") as step:
            if not self.load.is_alive():
                self._totals_file.unlink(missing_ok=True)
            address = dict(zip(("PGUSER", "PGPASSWORD"), (SHOP_OWNER, self.stack.secrets.shop_app), strict=True))
            program = self.stack.source.binaries.program("pgbench")
            self.load.start(
                [sys.executable, "-m", "demo.workload", "--report", self._totals_file, "--pgbench", program],
                environ=dict(self.stack.airflow.environ) | self.stack.source.environment(SHOP) | address,
                cwd=self.stack.project.root,
            )
            self.wait(step, lambda: "" if self.totals().transactions else "no transaction yet", self._watch_load)
            step.result = "several writers and pgbench, each at a bounded rate"

    def bootstrap(self) -> None:
        """Run the bootstrap DAG to its end; the load continues meanwhile. A run that is under way is waited for."""
        dag = self.watch.dag("bootstrap")
        with self.progress.step(dag) as step:
            self.unpause("bootstrap")
            running = [run["dag_run_id"] for run in fresh.unfinished(self.api.runs(dag))]
            run = running[0] if running else self.api.trigger(dag)

            def say(tasks: list[Json]) -> None:
                self.watch.print_tasks(tasks)
                step.say(
                    ", ".join(f"{task['task_id']} is {task['state'] or 'waiting'}" for task in fresh.open_tasks(tasks))
                )

            self.api.wait_for_run(dag, run, say)
            step.result = f"first cut at {self.cut}"

    def let_schedules_run(self) -> None:
        """Unpause what runs by schedule."""
        for verb in ("capture", "merge", "resync", "slot_health"):
            self.unpause(verb)

    def live(self, captures: int, merges: int) -> None:
        """Wait until so many captures have landed changes, and so many merges have published a cut."""

        def missing() -> str:
            captured, merged = self.watch.captures(), self.watch.merges()
            step.result = f"{captured} captures, {merged} merges"
            enough = captured >= captures and merged >= merges
            return "" if enough else f"{captured} of {captures} captures, {merged} of {merges} merges"

        with self.progress.step("By schedule, while the load continues") as step:
            self.wait(step, missing, self.watch_all)

    def stop_load(self) -> Lsn:
        """Stop the load between transactions; return the end of the source's WAL, beyond all that it wrote."""
        with self.progress.step("Stopping the live load") as step:
            self.watch_all()
            self.load.stop()
            done = self.totals()
            step.result = f"{done.transactions:,} transactions in {done.seconds:.0f} s, {done.refused.total()} refused"
            ((flushed,),) = Database(self.stack.source, SHOP).execute("select pg_current_wal_flush_lsn()::text")
            return Lsn.parse(flushed)

    def land(self, goal: Lsn) -> None:
        """Capture everything up to `goal`; one is asked for, instead of waiting for the full minute."""

        def missing() -> str:
            landed = self.context.ledger.pipelines.get(NAME).position
            return "" if landed is not None and landed >= goal else f"landed through {landed} of {goal}"

        with self.progress.step("The last capture") as step:
            self.api.trigger(self.watch.dag("capture"))
            self.wait(step, missing, self.watch.look)
            step.result = f"landed through {goal}"

    def catch_up(self, goal: Lsn) -> None:
        """Wait until a cut holds everything up to `goal`.

        A merge is asked for only where the schedule has no reason to start one, because what was written last is WAL
        without changes.
        """

        def missing() -> str:
            step.result = f"cut {self.cut}"
            if self.cut >= goal:
                return ""
            merges = self.api.runs(self.watch.dag("merge"))
            known = self.context.ledger.page.status(NAME)
            if not (known and known.unmerged_changes) and not fresh.unfinished(merges):
                self.api.trigger(self.watch.dag("merge"), {"force": True})
            return f"merged through {self.cut} of {goal}"

        with self.progress.step("The lake catches up") as step:
            self.wait(step, missing, self.watch.look)

    def pause_schedules(self) -> None:
        """Pause all DAGs; tasks that have begun continue."""
        for dag in fresh.dag_ids(self.pipeline):
            self.api.pause(dag)
        fresh.schedules_mark(self.stack.project).unlink(missing_ok=True)

    def compare(self) -> Comparison:
        """Compare every table with the source."""
        with self.progress.step("Comparing every table with the source") as step:
            if self.stack.cluster:
                os.environ |= self.stack.cluster.store.environment()  # where PyIceberg looks for the store
            found = compare(self.context)
            step.result = "equal" if found.equal else "they differ"
            return found

    def await_last_runs(self) -> None:
        """Wait for the tasks that began before the pause; what they would leave unfinished would be shown as failed."""
        with self.progress.step("The last runs") as step:
            self.wait(step, lambda: ", ".join(self._running()))

    def is_bootstrapped(self) -> bool:
        """Return whether the pipeline's bootstrap has come to its end."""
        return fresh.is_bootstrapped(self.context)

    # --- what is known -------------------------------------------------------------------------------

    @cached_property
    def pipeline(self) -> Pipeline:
        """Return the demo's pipeline."""
        return load_pipeline(self.stack.pipelines / f"{NAME}.yaml", self.stack.environment())

    @cached_property
    def context(self) -> Context:
        """Return the pipeline with its connections, as the command line has it."""
        environment = self.stack.environment()
        resolver = partial(Connection.from_airflow_environment, environ=environment)
        return Context(self.pipeline, resolver, self.stack.project.root, environment)

    @cached_property
    def watch(self) -> Watch:
        """Return the watch over this demo's runs: those that began after it was first asked for."""
        api = self.api
        earlier = {run["dag_run_id"] for dag in fresh.dag_ids(self.pipeline) for run in api.runs(dag)}
        return Watch(self.context, api, self.progress.console.print, earlier)

    @property
    def api(self) -> AirflowApi:
        """Return Airflow's REST API."""
        return self.stack.airflow.api

    @property
    def load(self) -> Session:
        """Return the background session of the live load."""
        return self.stack.session("workload")

    @property
    def cut(self) -> Lsn:
        """Return the position of the last cut."""
        return self.watch.cuts()[-1].lsn

    def totals(self) -> Totals:
        """Return what the load has done so far."""
        return Totals.read(self._totals_file)

    def figures(self) -> Figures:
        """Return what went through each stage; copies made after bootstrap's aside."""
        copies = self.context.ledger.loads.copies(NAME)
        return Figures(
            load=self.totals(),
            copied_rows=sum(copied.rows for copied in copies if copied.started_at < self.watch.cuts()[0].published_at),
            windows=self.watch.windows(),
            cuts=self.watch.cuts(),
            copy_seconds=self.watch.task_seconds("bootstrap", "copy"),
            load_seconds=self.watch.task_seconds("bootstrap", "load"),
            merge_seconds=self.watch.task_seconds("merge", "spark"),
            reading_seconds=reading.seconds(self.context.landing, self.watch.windows(), self.watch.cuts()),
        )

    # --- details -------------------------------------------------------------------------------------

    @property
    def _totals_file(self) -> Path:
        return self.stack.project.local / "workload.json"

    def unpause(self, verb: str) -> None:
        """Let a DAG's runs begin."""
        fresh.schedules_mark(self.stack.project).touch()
        self.api.unpause(self.watch.dag(verb))

    def _running(self) -> list[str]:
        runs = ((dag, run) for dag in fresh.dag_ids(self.pipeline) for run in fresh.unfinished(self.api.runs(dag)))
        tasks = ((dag, self.api.task_instances(dag, run["dag_run_id"])) for dag, run in runs)
        return [f"{dag}.{task}" for dag, found in tasks for task in fresh.at_work(found)]

    def watch_all(self) -> None:
        """Print what is new of load and pipeline; raises StackError when something went wrong."""
        self._watch_load()
        self.watch.look()

    def _watch_load(self) -> None:
        if not self.load.is_alive():
            raise StackError("the live load to continue", "it has ended", "read its log", self.load.log)

    def wait(self, step: Step, missing: Callable[[], str], watch: Callable[[], None] | None = None) -> None:
        """Wait until nothing is `missing`, and look every time at what continues."""
        for _ in poll(pause=POLL):
            waiting_for = missing()
            if watch is not None:
                watch()
            if not waiting_for:
                return
            step.say(waiting_for)
            self.stack.airflow.require_alive()

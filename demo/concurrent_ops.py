"""What is done during the main job: a table joins, another is copied again, history is filled.

One run copies both tables. Without it the one that joins would be copied as well, by a run that capture asks for: that
run is kept back, because two would cost the demo half a minute more. A changelog's interval is a minute here: a day
would not be over before the demo is.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from demo import source
from demo.drive import Demo
from demo.fresh import NAME
from penstock.ledger.changelogs import FillRecord
from stack.servers.databases import SHOP
from stack.servers.postgres import Database

COPIED_AGAIN = "shop.customers"
JOINED = "shop.gift_cards"
MINUTE = timedelta(minutes=1)


@dataclass
class Copies:
    """Two copies under load; `begin` comes first, then `build`, then `end`."""

    demo: Demo
    run: str = ""

    def begin(self) -> None:
        """Let a table join the publication, and copy it and another one."""
        with self.demo.progress.step(f"{JOINED} joins the publication") as step:
            source.sell_gift_cards(Database(self.demo.stack.source, SHOP))
            self.demo.unpause("capture")
            self.demo.api.trigger(self.demo.watch.dag("capture"))
            self.demo.wait(step, lambda: "" if self._state() else "no capture has seen it", self.demo.watch_all)
            step.result = "seen by capture"
        self.run = self.demo.api.trigger(self._dag, {"tables": [COPIED_AGAIN, JOINED], "dry_run": False})
        self.demo.unpause("resync")

    def build(self) -> None:
        """Wait until both are built next to what readers see, while the load, captures and merges continue."""
        with self.demo.progress.step(f"{self._dag} under load") as step:
            self.demo.wait(step, self._unbuilt, self.demo.watch_all)
            step.result = f"{COPIED_AGAIN} copied again, {JOINED} copied"

    def end(self) -> None:
        """Wait until they are what readers see."""
        with self.demo.progress.step(self._dag) as step:
            self.demo.api.wait_for_run(self._dag, self.run, self.demo.watch.print_tasks)
            self.demo.wait(step, lambda: "" if self._state() == "ready" else f"{JOINED} is {self._state()}")
            step.result = "both switched in one cut"

    @property
    def _dag(self) -> str:
        return self.demo.watch.dag("resync")

    def _unbuilt(self) -> str:
        tasks = self.demo.api.task_instances(self._dag, self.run)
        states = {task["task_id"]: task["state"] for task in tasks}
        return (
            "" if states.get("build") == "success" else f"look is {states.get('look')}, build is {states.get('build')}"
        )

    def _state(self) -> str:
        states = {table.qualified: table.state for table in self.demo.context.ledger.tables.all(NAME)}
        return states.get(JOINED, "")


def _minute_of(time: datetime) -> datetime:
    return time.astimezone(UTC).replace(second=0, microsecond=0)


@dataclass
class Backfill:
    """One interval of the changelog, filled by Airflow's backfill; `begin` comes first, then `end`.

    It is the last whole minute before this was made, but none before the pipeline's first.
    """

    demo: Demo
    minute: datetime = field(init=False)

    def __post_init__(self) -> None:
        first = self.demo.context.ledger.changelogs.history(NAME).known_from
        last = _minute_of(datetime.now(UTC)) - MINUTE
        self.minute = last if first is None else max(last, _minute_of(first))

    def begin(self) -> None:
        """Ask for the backfill of the minute, when it is over: Airflow takes no other."""
        with self.demo.progress.step(f"The minute {self.minute:%H:%M} UTC") as step:
            self.demo.wait(step, lambda: "" if _minute_of(datetime.now(UTC)) > self.minute else "not over")
            step.result = "over"
        span = dict.fromkeys(("from_date", "to_date"), self.minute.isoformat())
        wanted = {"dag_id": self._dag, "max_active_runs": 1, "dag_run_conf": {}, **span}
        self.demo.api.call("POST", "backfills", json=wanted)
        self.demo.unpause("changelog")  # not before: its schedule would ask for that minute first

    def end(self) -> None:
        """Wait until it is filled."""
        with self.demo.progress.step(f"{self._dag}, by Airflow's backfill") as step:
            self.demo.wait(step, lambda: "" if self._filled() else "not filled yet", self.demo.watch.look)
            step.result = f"{self._filled()[0].rows:,} changes of the minute {self.minute:%H:%M} UTC"

    @property
    def _dag(self) -> str:
        return self.demo.watch.dag("changelog")

    def _filled(self) -> list[FillRecord]:
        return self.demo.context.ledger.changelogs.fills(NAME, since=self.minute, before=self.minute + MINUTE)

"""What is done beside the main job while it goes on: a table joins, another is copied anew, history is filled.

Copies are begun at once, each by its own DAG, and then waited for in turn. A changelog's interval is a minute here:
a day would not be over before the demo is. The first that is captured whole is filled when it is over.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from demo import source
from demo.drive import PATIENCE, Demo
from demo.fresh import NAME
from penstock.ledger.changelogs import FillRecord
from stack.databases import SHOP
from stack.postgres import Database

ANEW = "shop.customers"
JOINED = "shop.gift_cards"
MINUTE = timedelta(minutes=1)


@dataclass
class Beside:
    """The work beside one demo's main job; `begin` comes first, then `end`."""

    demo: Demo
    copied_by: str = ""
    minute: datetime = datetime.min

    def begin(self) -> None:
        """Ask for a copy, and let a table join the publication."""
        self.copied_by = self.demo.api.trigger(self.demo.watch.dag("resync"), {"tables": [ANEW]})
        source.sell_gift_cards(Database(self.demo.stack.source, SHOP))
        self.demo.api.trigger(self.demo.watch.dag("capture"))  # it sees the new table, and wakes resync for it
        self.minute = datetime.now(UTC).replace(second=0, microsecond=0) + MINUTE

    def end(self) -> None:
        """Wait for all of it, while the load, captures and merges go on."""
        dag = self.demo.watch.dag("resync")
        with self.demo.progress.step(dag) as step:
            self.demo.api.wait_for_run(dag, self.copied_by, PATIENCE, self.demo.watch.tell_tasks)
            self.demo.watch_all()
            step.result = f"{ANEW} copied anew, in one cut"
        with self.demo.progress.step(f"{JOINED} joins") as step:
            self.demo.wait(step, self._unjoined, self.demo.watch_all)
            step.result = "copied and merged"
        dag = self.demo.watch.dag("changelog")
        with self.demo.progress.step(f"{dag}, by Airflow's backfill") as step:
            self.demo.wait(step, self._unfinished, self.demo.watch_all)
            span = dict.fromkeys(("from_date", "to_date"), self.minute.isoformat())
            wanted = {"dag_id": dag, "max_active_runs": 1, "dag_run_conf": {}, **span}
            self.demo.unpause("changelog")
            self.demo.api.call("POST", "backfills", json=wanted)
            self.demo.wait(step, lambda: "" if self._filled() else "no interval is filled", self.demo.watch_all)
            self.demo.api.pause(dag)
            filled = self._filled()
            rows = filled[0].rows if filled else 0
            step.result = f"{rows:,} changes of the minute {self.minute:%H:%M} UTC"

    def _unjoined(self) -> str:
        states = {table.qualified: table.state for table in self.demo.context.ledger.tables(NAME)}
        state = states.get(JOINED, "not seen yet")
        return "" if state == "ready" else f"{JOINED} is {state}"

    def _unfinished(self) -> str:
        return "" if datetime.now(UTC) > self.minute + MINUTE else f"the minute {self.minute:%H:%M} UTC is not over"

    def _filled(self) -> list[FillRecord]:
        return self.demo.context.ledger.fills(NAME, since=self.minute, before=self.minute + MINUTE)

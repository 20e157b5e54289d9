"""The DAG that verifies, as the demo's last proof but one: source and lake are compared at one exact position.

It is begun before the lake has caught up: it waits for the same captures and merges.
"""

from dataclasses import dataclass

from demo.drive import Demo
from demo.fresh import NAME
from stack.errors import StackError


@dataclass
class Verification:
    """One run of the DAG over every row; `begin` comes first, then `end`."""

    demo: Demo
    run: str = ""

    def begin(self) -> None:
        """Ask for the comparison of every table as it is at the source now."""
        self.demo.unpause("verify")
        self.run = self.demo.api.trigger(self.demo.watch.dag("verify"), {"mode": "whole"})

    def end(self) -> None:
        """Wait for it; raises StackError when a table differs."""
        dag = self.demo.watch.dag("verify")
        with self.demo.progress.step(dag) as step:
            self.demo.api.wait_for_run(dag, self.run, self.demo.watch.print_tasks)
            self.demo.watch.look()
            step.result = self._verified()

    def _verified(self) -> str:
        tables = self.demo.context.ledger.verifications.tables(NAME)
        through = [table.verified_through for table in tables if table.verified_through is not None]
        if unlike := [f"{table.schema}.{table.name}" for table in tables if table.differs]:
            raise StackError("every table to be equal", f"not so: {unlike}", "read docs/runbooks/verify-differs.md")
        return f"{len(through)} tables equal at exactly {max(through)}"

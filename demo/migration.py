"""A migration of the source while the load continues: the lake follows it as metadata, and no table is paused or copied.

Each statement is a transaction, tried again where the load holds the table: as a careful team would run it.
"""

from dataclasses import dataclass

from psycopg import errors

from demo.drive import Demo
from demo.fresh import NAME
from penstock.polling import poll
from stack.errors import StackError
from stack.servers.databases import SHOP
from stack.servers.postgres import Database

# The added column is of another type than the dropped one: of the same, rows between them would have two readings, and without
# the event trigger the table would be copied.
STATEMENTS = (
    "alter table shop.coupons add column campaign varchar(40) not null default 'spring'",
    "alter table shop.clicks rename column referrer to referred_by",
    "alter table shop.customers alter column name type varchar(120)",
    'alter table shop."price.list" alter column price type numeric(14, 2)',
    "alter table shop.coupons drop column terms",
    "drop table shop.daily_visits_2023",
)
LOCK_SECONDS = 0.5
EVENTS = 1000


@dataclass(frozen=True)
class Migration:
    """One migration; `run` comes first, then, when the lake has caught up, `end`."""

    demo: Demo

    def run(self) -> None:
        """Run each statement as soon as the load lets it have its table."""
        with self.demo.progress.step("A live migration of the source") as step:
            for statement in STATEMENTS:
                step.say(statement)
                self._alter(statement)
            step.result = f"{len(STATEMENTS)} changes of its shape while the load continues"

    def end(self) -> None:
        """Look whether the pipeline has followed each; raises StackError where it has not."""
        events = self.demo.context.ledger.events.all(NAME, limit=EVENTS)
        followed = [event.message for event in events if event.slug == "schema-followed"]
        if len(followed) != len(STATEMENTS):
            came = f"{len(followed)}: {'; '.join(followed)}"
            expected = f"{len(STATEMENTS)} changes of shape to be followed"
            raise StackError(expected, came, "read docs/runbooks/schema-change.md")

    def _alter(self, statement: str) -> None:
        source = Database(self.demo.stack.source, SHOP)
        for _ in poll(pause=LOCK_SECONDS):
            try:
                source.execute(f"set lock_timeout = '{LOCK_SECONDS}s'; {statement}")
            except errors.LockNotAvailable:
                self.demo.watch_all()
            else:
                return

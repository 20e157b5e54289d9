"""The loop: a round lets writers, people and faults loose between real captures and merges, settles, and compares.

Each round has a generator of its own, made of the seed and its number: the same tables and the same seed are the same
round. What a run does not repeat are positions in the WAL and where in a copy a kill falls.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field

import psycopg

from penstock.flow.spark_job import SparkJob
from tests.pipeline_env import PipelineEnv
from torture import faults, grammar, judge, model, publication, writers
from torture.driven import Driven
from torture.model import Model
from torture.report import Report
from torture.rules import Change, partitions
from torture.strangers import Stranger
from torture.writers import SETTINGS, Writers, failure


@dataclass(frozen=True)
class Mix:
    """Say what a run is made of; `only` names the rules of the grammar to choose from."""

    full: bool = True
    faults: bool = True
    publication: bool = True
    only: Collection[str] = ()
    steps: int = 60
    busy: bool = True
    lake: bool = True


@dataclass
class Torture:
    """Torture one pipeline that has been bootstrapped."""

    env: PipelineEnv
    report: Report
    mix: Mix = field(default_factory=Mix)

    def __post_init__(self) -> None:
        self.writers = Writers(self.env.source, self.report.note)
        pipeline = self.env.ctx.pipeline
        self.stranger = Stranger(self.env.source, self.report.note, pipeline.slot, pipeline.publication)
        self.dice = random.Random(self.report.seed)
        self.shaken = False
        self.driven = Driven(
            self.env, self.report, lambda: self.writers.release(self.dice, every=True), self._give_identity
        )

    def run(self, *, seconds: float, rounds: int | None = None) -> None:
        """Do rounds until the time is over, or so many."""
        deadline = time.monotonic() + seconds
        try:
            while time.monotonic() < deadline and (rounds is None or self.report.round < rounds):
                self.round()
        finally:
            self.writers.close()
            self.stranger.close()

    def round(self) -> None:
        """Do one round."""
        dice = self._begin()
        started, before = time.monotonic(), self.report.statements
        for _ in range(dice.randrange(self.mix.steps // 2, self.mix.steps)):
            self._step(dice)
        self._settle(dice)
        found = self.compare()
        self.report.say(
            f"round {self.report.round}: {self.report.statements - before} statements, {found} tables equal, "
            f"{time.monotonic() - started:.0f} s"
        )

    def _give_identity(self, table: str) -> None:
        """Do what `no-usable-identity` asks of a table's owner, for the table and its partitions."""
        asked = (
            "select 'alter table ' || member || ' replica identity full' from (select relid as member"
            " from pg_partition_tree(to_regclass(%s)) union select to_regclass(%s)) as t where member is not null"
        )
        name = ".".join(f'"{part}"' for part in table.split(".", 1))
        self._admin([text for (text,) in self.env.source.execute(asked, name, name)], who="owner")

    def land(self, judged: Callable[[Model], Iterable[tuple[str, tuple[str, ...]]]]) -> None:
        """Do one round that ends in the landing zone, and let the caller judge what was landed."""
        dice = self._begin()
        self.report.equal_at.clear()
        first = self.report.numbers
        for _ in range(dice.randrange(self.mix.steps // 2, self.mix.steps)):
            self._step(dice)
        self.writers.quiesce(dice)
        self._restore()
        self.env.flush()
        self.driven.capture()
        self.driven.note_paused()
        for table, lines in judged(self._model()):
            self.report.equal_at.setdefault(table, first)
            if lines:
                self.report.differs(table, lines)
            else:
                self.report.compared += 1
        self.report.say(
            f"round {self.report.round}: {self.report.numbers - first} steps, {self.report.compared} compared"
        )

    def _begin(self) -> random.Random:
        """Begin a round; in few of them the publication is altered, which may pause every table at once."""
        self.report.round += 1
        dice = random.Random(f"{self.report.seed}/{self.report.round}")
        self.shaken = self.mix.publication and self.mix.full and dice.random() < 0.25
        return dice

    # --- what happens in a round --------------------------------------------------------------------

    def _step(self, dice: random.Random) -> None:
        chosen = dice.random()
        if chosen >= 0.92 and dice.random() < 0.9:
            self.writers.release(dice)
        if chosen < 0.05:
            self.report.rules[f"stranger {self.stranger.step(dice, self._model().roots)}"] += 1
        elif chosen < 0.74:
            self.writers.step(dice, self._model())
        elif chosen < 0.90:
            self._ddl(dice)
        elif chosen < 0.92:
            self._alter_publication(dice)
        elif chosen < 0.965:
            self.driven.capture()
        elif chosen < 0.98:
            self._fault(dice)
        elif not self.mix.lake:
            self.driven.capture()
        elif chosen < 0.995:
            self.driven.merge()
        else:
            self.driven.maintain()

    def _ddl(self, dice: random.Random) -> None:
        change = grammar.draw(dice, self._model(), full=self.mix.full, only=self.mix.only)
        if change is not None:
            self.report.rules[change.rule] += 1
            if dice.random() < 0.15:
                self._ddl_doubtful(dice, change)
                return
            self._admin(change.statements, who=f"admin {change.rule}", atomic=change.atomic, between=dice)

    def _ddl_doubtful(self, dice: random.Random, change: Change) -> None:
        """Make the change in a transaction that fails, that goes back to a savepoint, or that is prepared and ended some time."""
        who, end = f"admin {change.rule}", dice.choice(("rollback", "rollback to savepoint", "prepare"))
        if end == "rollback to savepoint":
            around = ("savepoint change", *change.statements, "rollback to savepoint change")
            rows = [writers.statement(dice, self._model(), dice.choice(self._model().roots))]
            self._admin((*around, *rows), who=who, atomic=True)
        elif end == "rollback":
            self._admin((*change.statements, "select 1 / 0"), who=who, atomic=True)
        else:
            name = self.writers.prepared_name()
            self._admin(("begin", *change.statements, f"prepare transaction '{name}'"), who=who)

    def _alter_publication(self, dice: random.Random) -> None:
        if not self.shaken:
            return
        statements = publication.change(dice, self._model(), self.env.ctx.pipeline.publication)
        if statements:
            self.report.rules["publication"] += 1
            self._admin(statements, who="admin publication")

    def _fault(self, dice: random.Random) -> None:
        if not self.mix.faults:
            return
        kinds = faults.FAULTS if self.mix.lake else faults.WITHOUT_LAKE
        chosen = dice.choices(list(kinds), weights=list(kinds.values()))[0]
        try:
            said = chosen(dice, self.driven)
        except Exception as error:  # a fault that could not be brought about is noted, not hidden
            said = f"failed: {type(error).__name__}: {str(error)[:300]}"
        self.report.faults[chosen.__name__] += 1
        self.report.write_line("fault", f"{chosen.__name__}: {said}")

    def _admin(
        self, statements: Collection[str], *, who: str, atomic: bool = False, between: random.Random | None = None
    ) -> None:
        """Run statements in order until one fails; a capture may come between any two that are not one transaction."""
        with self.env.source.connect(autocommit=not atomic) as conn:
            conn.execute(SETTINGS)
            for text in statements:
                try:
                    conn.execute(text.encode())
                except psycopg.Error as error:
                    self.report.note(who, text, failure(error))
                    conn.rollback()
                    return
                self.report.note(who, text + (" -- in one transaction" if atomic else ""))
                if between is not None and not atomic and between.random() < 0.1:
                    self.driven.capture()

    def _model(self) -> Model:
        with self.env.source.connect() as conn:
            return model.read(conn, self.env.ctx.pipeline.publication)

    # --- the end of a round -------------------------------------------------------------------------

    def _settle(self, dice: random.Random) -> None:
        """Let writers rest, put the publication right, and bring the pipeline to the source's position."""
        keep = dice.random() < 0.4
        if self.mix.busy and dice.random() < 0.3:
            self._busy_resync(dice)
        self.writers.quiesce(dice, keep=keep)
        self._restore()
        self.env.flush()
        self.driven.heal()
        self.driven.capture()
        self.driven.merge()
        self.driven.heal()
        self.driven.note_paused()
        if dice.random() < 0.7:
            self.driven.answer(lambda job: self._meanwhile(dice, job, ddl=0.2))
            self.writers.quiesce(dice, keep=keep)
            self.env.flush()
            self.driven.capture()
            self.driven.merge()
        if (due := self.driven.due()) and self.driven.resync(due):
            due = self.driven.due()
        if due:
            self._admin(partitions.repaired(self._model()), who="admin repaired")
            if keep:  # a table that joined waits for transactions that were open then
                self.writers.quiesce(dice)
                self.env.flush()
                self.driven.capture()
            if due := self.driven.due():  # what the owner has just mended can be copied now, before the next change
                self.driven.resync(due)
        self.env.flush()
        self.driven.capture()
        self.driven.merge()
        self.driven.note_stuck()

    def _busy_resync(self, dice: random.Random) -> None:
        """Copy tables while writers and people continue."""
        tables = [record.qualified for record in judge.ready(self.env)]
        chosen = sorted(dice.sample(tables, min(2, len(tables))))
        if chosen:
            self.driven.resync(chosen, lambda job: self._meanwhile(dice, job))

    def _meanwhile(self, dice: random.Random, job: SparkJob, *, ddl: float = 0.4) -> None:
        for _ in range(dice.randrange(6)):
            self.writers.step(dice, self._model())
        if dice.random() < ddl:
            self._ddl(dice)
        if dice.random() < 0.3:
            self.writers.quiesce(dice)
            self.driven.capture()
        self.env.submit(job)
        for _ in range(dice.randrange(4)):
            self.writers.step(dice, self._model())
        self.writers.quiesce(dice)

    def _restore(self) -> None:
        name = self.env.ctx.pipeline.publication
        for _ in range(2):  # its members show once it publishes roots again
            found = self._model()
            statements = publication.restored(found, name)
            if publication.whole(self._options(), found):
                return
            self._admin(statements, who="admin publication restored")

    def _options(self) -> tuple[bool, ...]:
        name = self.env.ctx.pipeline.publication
        text = "select pubinsert, pubupdate, pubdelete, pubtruncate, pubviaroot from pg_publication where pubname = %s"
        rows = self.env.source.execute(text, name)
        return tuple(rows[0]) if rows else ()

    def compare(self) -> int:
        """Compare every ready table; those that differ are copied again, so that the next round begins right."""
        found, equal, wrong = self._model(), 0, []
        for table, lines in judge.compare(self.env, found):
            if lines:
                self.report.differs(table, lines)
                wrong.append(table)
            else:
                self.report.equal(table)
                equal += 1
        if wrong:
            self.driven.resync(wrong)
        return equal

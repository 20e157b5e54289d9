"""Run every scenario on a workbench, tables together, batch by batch, and judge what each table must hold in the end."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Protocol

from penstock.jobs.plans import TableResult
from penstock.shapes.mirror_column import MirrorColumn
from tests.spark.histories import BagJudge, Event, KeyedJudge, Transaction, of_history
from tests.spark.scenarios import SCENARIOS, Scenario
from tests.spark.workbench import Table, column

CONFLICTS = ("update_missing", "delete_missing", "insert_existing")


class Bench(Protocol):
    """What a history needs: tables, landing, merges, and the rows that are published in the end."""

    @property
    def tables(self) -> Sequence[Any]: ...
    def table(self, *columns: MirrorColumn, identity: str | None = None) -> Any: ...
    def land(self, table: Any, *transactions: Transaction, names: Sequence[str] | None = None) -> None: ...
    def merge(self) -> list[TableResult]: ...
    def rows(self, table: Any) -> Counter[tuple[Any, ...]]: ...


@dataclass
class Outcome:
    """What one table holds and should hold in the end, scenario by scenario, and what each batch reported."""

    scenarios: list[Scenario]
    table: Table
    judges: list[KeyedJudge | BagJudge]
    results: list[TableResult]
    rows: Counter[tuple[Any, ...]]

    def rows_of(self, scenario: Scenario) -> Counter[tuple[Any, ...]]:
        if scenario.alone:
            return self.rows
        number = str(self.scenarios.index(scenario))
        return Counter({row[1:]: count for row, count in self.rows.items() if row[0] == number})

    def expected_rows_of(self, scenario: Scenario) -> Counter[tuple[Any, ...]]:
        bag = self.judges[self.scenarios.index(scenario)].bag()
        return Counter({tuple(None if value is None else str(value) for value in row): n for row, n in bag.items()})


def _shared_tables() -> Iterator[list[Scenario]]:
    """Group the scenarios: those that may share a table by what it looks like."""
    yield from ([each] for each in SCENARIOS if each.alone)
    sociable = [each for each in SCENARIOS if not each.alone]

    def looks(scenario: Scenario) -> str:
        return f"{scenario.identity} {[(each.name, each.type.name) for each in scenario.columns]}"

    yield from (list(group) for _, group in groupby(sorted(sociable, key=looks), looks))


def _batch(scenarios: list[Scenario], number: int) -> list[Transaction]:
    if scenarios[0].alone:
        return list(scenarios[0].batches[number]) if number < len(scenarios[0].batches) else []
    numbered = [(at, each.batches[number]) for at, each in enumerate(scenarios) if number < len(each.batches)]
    return [of_history(transaction, at) for at, batch in numbered for transaction in batch]


def _judge(scenario: Scenario) -> KeyedJudge | BagJudge:
    """Judge a whole scenario; a batch that pauses its table leaves the rows of the one before."""
    judge = KeyedJudge(scenario.keys) if scenario.keys else BagJudge()
    judge.apply(Event("I", new=dict(row)) for row in scenario.copy or ())
    for batch in scenario.batches[:-1] if scenario.paused else scenario.batches:
        judge.apply(event for transaction in batch for event in transaction.events)
    return judge


def outcomes(bench: Bench) -> list[Outcome]:
    """Merge every scenario, and return what came of each table."""
    groups = list(_shared_tables())
    for first, *_ in groups:
        extra = () if first.alone else (column("h", "int4", key=bool(first.keys)),)
        bench.table(*extra, *first.columns, identity=first.identity)
    results: list[list[TableResult]] = []
    for number in range(max(len(each.batches) for each in SCENARIOS)):
        for group, table in zip(groups, bench.tables, strict=True):
            if number == 0 and group[0].copy is not None:
                table.land_copy(group[0].copy)
            if batch := _batch(group, number):
                bench.land(table, *batch)
        results.append(bench.merge())
    return [
        Outcome(group, table, [_judge(each) for each in group], reported, bench.rows(table))
        for group, table, *reported in zip(groups, bench.tables, *results, strict=True)
    ]


@dataclass(frozen=True)
class End:
    """Hold what a scenario came to: why its table is paused, its rows, and what its last batch counted."""

    paused: str | None
    rows: Counter[tuple[Any, ...]]
    counts: dict[str, int]


def end(scenario: Scenario, outcomes: Iterable[Outcome]) -> End:
    """Return what became of a scenario."""
    outcome = next(each for each in outcomes if scenario in each.scenarios)
    last = outcome.results[len(scenario.batches) - 1]
    return End(last.paused_slug, outcome.rows_of(scenario), {name: last.counts[name] for name in scenario.counts})


def expected_end(scenario: Scenario, outcomes: Iterable[Outcome]) -> End:
    """Return what the judge says of a scenario."""
    outcome = next(each for each in outcomes if scenario in each.scenarios)
    return End(scenario.paused, outcome.expected_rows_of(scenario), dict(scenario.counts))


def conflicts(outcomes: Iterable[Outcome]) -> list[tuple[list[str], Counter[str], Counter[str]]]:
    """Return the scenarios of each table with the conflicts that its merges counted, and those that the judge did.

    One at a time the judge counts what the merge counts per batch; none of these scenarios hides one in a batch.
    """
    return [
        (
            [each.name for each in outcome.scenarios],
            +Counter({name: sum(result.counts[name] for result in outcome.results) for name in CONFLICTS}),
            +sum((judge.conflicts for judge in outcome.judges), Counter[str]()),
        )
        for outcome in outcomes
        if not any(each.paused for each in outcome.scenarios)
    ]

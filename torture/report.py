"""What a torture has done and found: counted while it runs, printed at its end and into a log of its own."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

KEPT = 4000
"""Statements that are remembered; a finding shows those since its table was last seen equal."""


@dataclass(frozen=True)
class Step:
    """Hold one thing that was done, by whom, and what came of it (empty: it worked)."""

    number: int
    round: int
    who: str
    what: str
    outcome: str

    def line(self) -> str:
        """Return the step as one line of a log."""
        return f"{self.number:>6} round {self.round} {self.who}: {self.what}" + (
            f"  -- {self.outcome}" if self.outcome else ""
        )


@dataclass(frozen=True)
class Finding:
    """Hold a difference or a stuck state, with the steps that led to it."""

    kind: str
    table: str
    round: int
    lines: tuple[str, ...]
    steps: tuple[Step, ...]

    def text(self) -> Iterator[str]:
        """Describe it for a person."""
        yield f"{self.kind} in round {self.round}: {self.table}"
        yield from (f"  {line}" for line in self.lines)
        yield from (f"    {step.line()}" for step in self.steps)


@dataclass
class Report:
    """Count, remember and print."""

    seed: int
    log: Path
    say: Callable[[str], None]
    round: int = 0
    statements: int = 0
    failed: int = 0
    compared: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    paused: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    retried: Counter[str] = field(default_factory=Counter)
    rules: Counter[str] = field(default_factory=Counter)
    work: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    numbers: int = 0
    equal_at: dict[str, int] = field(default_factory=dict)
    started: float = field(default_factory=time.monotonic)

    def note(self, who: str, what: str, outcome: str = "") -> None:
        """Take down a statement."""
        self.statements += 1
        self.failed += bool(outcome)
        self.write_line(who, what, outcome)

    def write_line(self, who: str, what: str, outcome: str = "") -> None:
        """Take down anything else that was done."""
        self.numbers += 1
        step = Step(self.numbers, self.round, who, what, outcome)
        self.steps = [*self.steps[-KEPT:], step] if len(self.steps) >= 2 * KEPT else [*self.steps, step]
        self.write(step.line())

    def write(self, line: str) -> None:
        """Append a line to the log."""
        with self.log.open("a") as file:
            file.write(line + "\n")

    def equal(self, table: str) -> None:
        """Note that a table was compared and is equal."""
        self.compared += 1
        self.equal_at[table] = self.numbers

    def differs(self, table: str, lines: tuple[str, ...]) -> None:
        """Note that a table was compared and is not equal."""
        self.compared += 1
        self.find("difference", table, lines)

    def find(self, kind: str, table: str, lines: tuple[str, ...]) -> None:
        """Take down a finding with what was done to the table since it was last equal, and what the pipeline did."""
        since = self.equal_at.get(table, 0)
        words = {table.rpartition(".")[2], "commit", "rollback"}  # a partition and a type have names of their own
        steps = tuple(
            step
            for step in self.steps
            if step.number > since and (not step.who.startswith("writer") or any(word in step.what for word in words))
        )
        found = Finding(kind, table, self.round, lines, steps[-300:])
        self.findings.append(found)
        for line in found.text():
            self.write(line)
        self.say(f"FOUND {kind} in round {self.round}: {table}: {'; '.join(lines)[:400]}")

    def count(self, kind: str) -> int:
        """Count the findings of a kind."""
        return sum(finding.kind == kind for finding in self.findings)

    def lines(self) -> Iterator[str]:
        """Sum up."""
        yield f"seed {self.seed} (repeat with `make torture SEED={self.seed}`), {time.monotonic() - self.started:.0f} s"
        yield f"rounds {self.round}, statements {self.statements} ({self.failed} failed at the server), " + _counted(
            "faults", self.faults
        )
        yield _counted("pipeline", self.work)
        yield f"tables compared {self.compared}, differences {self.count('difference')}, stuck states {self.count('stuck')}"
        yield _counted("tables paused", self.paused)
        yield _counted("resyncs refused", self.refused)
        yield _counted("errors retried", self.retried)
        yield _counted("rules", self.rules)
        yield from (
            f"  {finding.kind} in round {finding.round}: {finding.table}: {'; '.join(finding.lines)[:300]}"
            for finding in self.findings
        )
        if self.findings:
            yield f"statements of each finding: {self.log}"


def _counted(what: str, counter: Counter[str]) -> str:
    listed = ", ".join(
        f"{name} {count}" for name, count in sorted(counter.items(), key=lambda each: (-each[1], each[0]))
    )
    return f"{what} {sum(counter.values())}" + (f" ({listed})" if listed else "")

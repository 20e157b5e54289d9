"""What verbs print: progress on the standard error output, results on the standard output."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from penstock.flow.check import Finding

_COLOURS = {"ok": "green", "warn": "yellow", "error": "red"}
_progress = Console(stderr=True, highlight=False)


def say(line: str) -> None:
    """Print one line of progress as it is: square brackets are ours, not rich's markup."""
    _progress.print(line, markup=False, soft_wrap=True)


def show(line: str) -> None:
    """Print one line as the verb's result."""
    Console().print(line, markup=False, soft_wrap=True)


def show_counts(counts: Mapping[str, object]) -> None:
    """Print a summary in one line."""
    show(", ".join(f"{key} {value}" for key, value in counts.items()))


def show_json(data: object) -> None:
    """Print plain data for other tools."""
    Console(soft_wrap=True).print_json(data=data)


def show_lines(title: str, lines: Iterable[tuple[str, str]]) -> None:
    """Print labels with their values."""
    table = Table(title=title, show_header=False)
    for label, value in lines:
        table.add_row(label, escape(value))
    Console().print(table)


def show_findings(title: str, findings: Iterable[Finding]) -> None:
    """Print each finding of the preflight with its next step."""
    table = Table(title=title)
    for heading in ("", "subject", "finding", "next step"):
        table.add_column(heading, overflow="fold")
    for finding in findings:
        level = f"[{_COLOURS[finding.level]}]{finding.level}[/]"
        table.add_row(level, *map(escape, (finding.subject, finding.message, finding.next_step or "")))
    Console().print(table)

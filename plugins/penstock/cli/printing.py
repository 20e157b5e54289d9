"""What verbs print: progress on the standard error output, results on the standard output."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:  # a runbook is to be read at once
    from penstock.flow.check import Finding

_COLOURS = {"ok": "green", "warn": "yellow", "error": "red"}


@cache
def progress_console() -> Console:
    """Return the console of the standard error output."""
    return Console(stderr=True, highlight=False)


def say(line: str) -> None:
    """Print one line of progress as it is: square brackets are ours, not rich's markup."""
    progress_console().print(line, markup=False, soft_wrap=True)


def show(line: str) -> None:
    """Print one line as the verb's result."""
    Console(highlight=False).print(line, markup=False, soft_wrap=True)


def show_counts(name: str, counts: Mapping[str, object]) -> None:
    """Print a summary in one line."""
    show(f"{name}: {', '.join(f'{key} {value}' for key, value in counts.items())}")


def show_json(data: object) -> None:
    """Print plain data for other tools."""
    Console(soft_wrap=True).print_json(data=data, default=str)


def show_lines(title: str, lines: Iterable[tuple[str, str]]) -> None:
    """Print labels with their values."""
    table = Table(title=title, show_header=False)
    for label, value in lines:
        table.add_row(label, escape(value))
    Console().print(table)


def show_table(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> None:
    """Print rows below headings."""
    table = Table()
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*map(escape, row))
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


def show_document(path: Path, replaced: Mapping[str, str]) -> None:
    """Print a Markdown document, laid out on a terminal and as it is elsewhere."""
    text = path.read_text(encoding="utf-8")
    for placeholder, value in replaced.items():
        text = text.replace(placeholder, value)
    console = Console()
    if not console.is_terminal:
        console.print(text, markup=False, highlight=False, soft_wrap=True)
        return
    from rich.markdown import Markdown  # noqa: PLC0415  # a fifth of a second that only this verb pays

    console.print(Markdown(text))

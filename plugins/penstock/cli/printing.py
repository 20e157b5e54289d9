"""What verbs print: results on the standard output, progress on the standard error output, as bars where a terminal shows them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from penstock.lsn import Lsn
from penstock.printable import printable

if TYPE_CHECKING:  # a runbook is to be read at once
    from rich.progress import TaskID

    from penstock.flow.check import Finding
    from penstock.flow.context import Stage

_COLOURS = {"ok": "green", "warn": "yellow", "error": "red"}
_WIDEST_LABEL = 32
"""A longer label moves its own value only."""


@cache
def progress_console() -> Console:
    """Return the console of the standard error output."""
    return Console(stderr=True, highlight=False, emoji=False)


def say(line: str) -> None:
    """Print one line of progress as it is: square brackets are ours, not rich's markup."""
    progress_console().print(printable(line), markup=False, soft_wrap=True)


def show(line: str | Text) -> None:
    """Print one line as the verb's result; on a terminal it may have a style."""
    if isinstance(line, str):
        line = printable(line)
    else:
        line.plain = printable(line.plain)
    Console(highlight=False, emoji=False).print(line, markup=False, soft_wrap=True)


def show_counts(name: str, counts: Mapping[str, object]) -> None:
    """Print a summary in one line."""
    show(f"{name}: {', '.join(f'{key} {value}' for key, value in counts.items())}")


def show_json(data: object) -> None:
    """Print data for other tools: records by their fields, times by ISO 8601, positions as PostgreSQL writes them."""
    Console(soft_wrap=True).print_json(data=_plain(data), default=str, ensure_ascii=True)


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if is_dataclass(value):
        return {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
    return str(value) if isinstance(value, Lsn) else value


def show_lines(title: str, lines: Iterable[tuple[str, str]]) -> None:
    """Print labels with their values, one line each however narrow the terminal: what is copied from it is whole."""
    rows = list(lines)
    width = min(max((len(label) for label, _ in rows), default=0), _WIDEST_LABEL)
    show(title)
    for label, value in rows:
        show(f"  {label:{width}}  {value}")


def show_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print rows below headings, a line each; the last column is not padded."""
    filled = [headings, *rows]
    widths = [max(map(len, column)) for column in list(zip(*filled, strict=True))[:-1]]
    for row in filled:
        show("  ".join([*(f"{cell:{width}}" for cell, width in zip(row, widths, strict=False)), row[-1]]))


def show_findings(title: str, findings: Iterable[Finding]) -> None:
    """Print each finding of the preflight, and below it its next step, each in one line that can be pasted."""
    show(title)
    for each in findings:
        show(Text.assemble((f"{each.level:5}", _COLOURS[each.level]), f"  {each.subject}: {each.message}"))
        if each.next_step:
            show(f"{'next':>5}  {each.next_step}")


def show_document(text: str) -> None:
    """Print a Markdown document, laid out on a terminal and as it is elsewhere."""
    console = Console()
    if not console.is_terminal:
        console.print(text, markup=False, highlight=False, soft_wrap=True)
        return
    from rich.markdown import Markdown  # noqa: PLC0415  # a fifth of a second that only this verb pays

    console.print(Markdown(text))


@contextmanager
def bars() -> Iterator[Stage | None]:
    """Lend a function that shows how far each stage of a work is; none where no one looks."""
    if not progress_console().is_terminal:
        yield None
        return
    from rich import progress  # noqa: PLC0415  # only who looks pays for it

    columns = (
        progress.TextColumn("{task.description}", markup=False),
        progress.BarColumn(),
        progress.TaskProgressColumn(),
        progress.TextColumn("{task.fields[rows]}"),
        progress.TimeElapsedColumn(),
        progress.TimeRemainingColumn(),
        progress.TextColumn("left"),
    )
    tasks: dict[str, TaskID] = {}
    # lines of progress are printed by the same console, so they appear above the bars
    with progress.Progress(*columns, console=progress_console(), transient=True) as shown:

        def stage(what: str, done: int, total: int, rows: int | None = None) -> None:
            if what not in tasks:
                tasks[what] = shown.add_task(printable(what), total=total, rows="")
            counted = "" if rows is None else f"{rows:,} rows"
            shown.update(tasks[what], completed=done, total=total, rows=counted)
            if done >= total:
                shown.remove_task(tasks.pop(what))

        yield stage

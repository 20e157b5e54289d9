"""Bars for work that takes its time: on a terminal only, so that a log or a pipe gets lines."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import (
    BarColumn,
    Progress,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from penstock.cli import printing
from penstock.flow.context import Stage
from penstock.printable import printable


@contextmanager
def bars() -> Iterator[Stage | None]:
    """Lend a function that shows how far each stage of a work is; none where no one looks."""
    if not printing.progress_console().is_terminal:
        yield None
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[rows]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("left"),
    )
    tasks: dict[str, TaskID] = {}
    # lines of progress are printed by the same console, so they appear above the bars
    with Progress(*columns, console=printing.progress_console(), transient=True) as shown:

        def stage(what: str, done: int, total: int, rows: int | None = None) -> None:
            if what not in tasks:
                tasks[what] = shown.add_task(printable(what), total=total, rows="")
            counted = "" if rows is None else f"{rows:,} rows"
            shown.update(tasks[what], completed=done, total=total, rows=counted)
            if done >= total:
                shown.remove_task(tasks.pop(what))

        yield stage

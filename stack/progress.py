"""What a person sees while steps go by: one line per finished step, and what the present one waits for, and for how long.

On a terminal that is a line that changes; elsewhere, as in the log of a CI job, a line now and then, ever more rarely.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console
from rich.markup import escape
from rich.progress import Progress as Bars
from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

NOTEWORTHY_SECONDS = 1.0
FIRST_REMINDER_SECONDS = 30.0


@dataclass
class Step:
    """One step under way: `say` what it waits for, and leave in `result` what came of it."""

    title: str
    result: str = ""
    doing: str = field(default="", init=False)

    def say(self, text: str) -> None:
        """Show what the step is doing right now."""
        self.doing = text

    @property
    def line(self) -> str:
        """Return the step with what it is doing."""
        return f"{self.title}: {self.doing}" if self.doing else self.title


@dataclass
class Progress:
    """A sequence of steps on a console."""

    console: Console = field(default_factory=lambda: Console(highlight=False, soft_wrap=True))
    first_reminder: float = FIRST_REMINDER_SECONDS

    @contextmanager
    def step(self, title: str) -> Iterator[Step]:
        """Run the body as one step; its line is printed when it ends, marked when it failed."""
        began, ended, step = time.monotonic(), threading.Event(), Step(title)
        show = self._spin if self.console.is_terminal else self._remind
        shower = threading.Thread(target=show, args=(step, began, ended), daemon=True)
        shower.start()
        try:
            yield step
        except BaseException:
            self._end(shower, ended)
            self.console.print(f"[red]✗[/] {escape(title)}")
            raise
        self._end(shower, ended)
        seconds = time.monotonic() - began
        took = f" [dim]({_span(seconds)})[/]" if seconds >= NOTEWORTHY_SECONDS else ""
        result = f": {escape(step.result)}" if step.result else ""
        self.console.print(f"[green]✓[/] {escape(title)}{result}{took}")

    def _spin(self, step: Step, _began: float, ended: threading.Event) -> None:
        columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
        with Bars(*columns, console=self.console, transient=True) as bars:
            task = bars.add_task(escape(step.line), total=None)
            while not ended.wait(0.25):
                bars.update(task, description=escape(step.line))

    def _remind(self, step: Step, began: float, ended: threading.Event) -> None:
        pause = self.first_reminder
        while not ended.wait(pause):
            self.console.print(f"  … {escape(step.line)} [dim](for {_span(time.monotonic() - began)})[/]")
            pause *= 2

    def _end(self, shower: threading.Thread, ended: threading.Event) -> None:
        ended.set()
        shower.join()


def _span(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"

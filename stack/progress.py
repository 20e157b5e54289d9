"""What a person sees while steps go by: one line per finished step, a spinner for the one that runs."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console
from rich.markup import escape

NOTEWORTHY_SECONDS = 1.0


@dataclass
class Step:
    """One step under way: `say` what it waits for, and leave in `result` what came of it."""

    title: str
    result: str = ""
    _spinner: object = field(default=None, repr=False)

    def say(self, text: str) -> None:
        """Show what the step is doing right now (on a terminal; elsewhere only results are printed)."""
        update = getattr(self._spinner, "update", None)
        if update is not None:
            update(f"{escape(self.title)}: {escape(text)}")


@dataclass
class Progress:
    """A sequence of steps on a console."""

    console: Console = field(default_factory=lambda: Console(highlight=False, soft_wrap=True))

    @contextmanager
    def step(self, title: str) -> Iterator[Step]:
        """Run the body as one step; its line is printed when it ends, marked when it failed."""
        began = time.monotonic()
        with self.console.status(escape(title)) as spinner:
            step = Step(title, _spinner=spinner)
            try:
                yield step
            except BaseException:
                self.console.print(f"[red]✗[/] {escape(title)}")
                raise
        seconds = time.monotonic() - began
        took = f" [dim]({seconds:.0f} s)[/]" if seconds >= NOTEWORTHY_SECONDS else ""
        result = f": {escape(step.result)}" if step.result else ""
        self.console.print(f"[green]✓[/] {escape(title)}{result}{took}")

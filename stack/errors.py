"""What a failed step says: what was expected, what came, what to do next, and which log to read."""

from pathlib import Path


class StackError(Exception):
    """A step of the local stack failed in a way that a person has to know about."""

    def __init__(self, expected: str, came: str, next_step: str, log: Path | None = None) -> None:
        self.expected = expected
        self.came = came
        self.next_step = next_step
        self.log = log
        lines = [f"Expected {expected}.", f"Came: {came}", f"Next: {next_step}"]
        if log is not None:
            lines.append(f"Log: {log}")
        super().__init__("\n".join(lines))

"""A figure, the table that shows them, and the file that keeps them."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Figure:
    """One measured figure; `ratio` compares it with the limit in its name, None where it has none."""

    name: str
    value: float
    unit: str
    ratio: float | None = None


def save(figures: Iterable[Figure]) -> Path:
    """Write `latest.json`: one object per figure."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / "latest.json"
    path.write_text(json.dumps([asdict(figure) for figure in figures], indent=1) + "\n")
    return path


def show(figures: Iterable[Figure]) -> None:
    """Print the figures next to those of the last committed reference."""
    path = RESULTS / "reference.json"
    reference = {entry["name"]: entry for entry in json.loads(path.read_text())} if path.exists() else {}
    table = Table(title="Penstock's figures on this machine; ratios are within one run")
    for heading in ("figure", "value", "unit", "ratio", "reference value", "reference ratio"):
        table.add_column(heading, justify="left" if heading in ("figure", "unit") else "right")
    for figure in figures:
        before = reference.get(figure.name, {})
        table.add_row(
            figure.name,
            _text(figure.value),
            figure.unit,
            _text(figure.ratio),
            _text(before.get("value")),
            _text(before.get("ratio")),
        )
    Console(width=140).print(table)


def _text(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2f}"

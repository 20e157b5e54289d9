"""`python -m bench [name ...]`: measure everything, or the named parts; print a table and write `latest.json`."""

import importlib
import sys

from rich.console import Console

from bench.figures import Figure, save, show

PARTS = (
    "capture",
    "many_tables",
    "initial_copy",
    "merge",
    "cold",
    "freshness",
    "many_merges",
    "maintain",
    "pipeline",
    "rebuild",
    "verify",
    "changelog",
    "schema_changes",
    "column_fetch",
)


def main() -> None:
    """Measure one part after the other."""
    wanted = sys.argv[1:] or PARTS
    figures: list[Figure] = []
    console = Console(stderr=True)
    for part in wanted:
        console.print(f"measuring: {part}")
        measured = importlib.import_module(f"bench.{part}").measure()
        for figure in measured:
            console.print(f"  {figure.name}: {figure.value:,.2f} {figure.unit}, ratio {figure.ratio}")
        figures += measured
        saved = save(figures)  # after each part: a later one that fails takes nothing away
    show(figures)
    print(saved.read_text())


if __name__ == "__main__":
    main()

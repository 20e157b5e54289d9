"""A trial as lines for whoever reviews the migration, as plain data for other tools, and as the status of a CI job. Pure."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from penstock.flow.trial.outcomes import PIPELINE, TableOutcome
from penstock.flow.trial.run import Trial
from penstock.ledger.table_records import LoadRecord
from penstock.shapes.steps import ORDER, Outcome
from penstock.units import several, size, span

_EXIT_STATUS: Mapping[Outcome, int] = {"free": 0, "copies": 1, "pauses": 2, "loses": 2}
_SAID = {
    "free": "{} followed without a copy",
    "copies": "{} to be copied again",
    "pauses": "{} to pause until a person acts",
    "loses": "{} to lose data in the lake",
}


def exit_status(trial: Trial) -> int:
    """Return the status for CI: 0 free, 1 copies, 2 pauses or loses."""
    return _EXIT_STATUS[trial.outcome]


def lines(trial: Trial) -> Iterator[str]:
    """Yield the trial as text, what concerns most at the top."""
    yield f"migration  {', '.join(trial.files)}"
    yield f"source     {trial.source or 'not asked'}"
    yield f"tried on   {trial.scratch}, with the source's schema and no rows"
    for table in _worst_first(trial):
        now = " (paused now: it waits for a copy anyway)" if table.table in trial.paused else ""
        yield ""
        yield f"{table.outcome.upper():7} {table.table}{now}"
        for change in table.changes:
            yield f"        {change.rule}: {change.text}"
            yield f"          cost     {change.cost}{_figures(trial, table.table) if table.copied else ''}"
            yield f"          readers  see {change.readers}"
    yield ""
    for note in trial.notes:
        yield f"note: {note}"
    yield f"{trial.outcome}: {_summary(trial)} (exit status {exit_status(trial)})"


def plain(trial: Trial) -> dict[str, Any]:
    """Return the trial as plain data."""
    return {
        "outcome": trial.outcome,
        "exit_status": exit_status(trial),
        "files": list(trial.files),
        "source": trial.source,
        "scratch": trial.scratch,
        "tables": [_plain(trial, table) for table in _worst_first(trial)],
        "unchanged": trial.unchanged,
        "notes": list(trial.notes),
    }


def _plain(trial: Trial, table: TableOutcome) -> dict[str, Any]:
    copy = trial.copies.get(table.table)
    return {
        "table": table.table,
        "outcome": table.outcome,
        "paused_now": table.table in trial.paused,
        "changes": [asdict(change) for change in table.changes],
        "copy": None
        if not table.copied
        else {
            "bytes": trial.sizes.get(table.table),
            "last_rows": copy.rows if copy else None,
            "last_minutes": round(_seconds(copy) / 60, 1) if copy else None,
            "last_at": copy.copied_at.isoformat() if copy and copy.copied_at else None,
        },
    }


def _worst_first(trial: Trial) -> list[TableOutcome]:
    return sorted(trial.tables, key=lambda table: (-ORDER.index(table.outcome), table.table))


def _figures(trial: Trial, table: str) -> str:
    known = [f"{size(trial.sizes[table])} at the source"] if table in trial.sizes else []
    if copy := trial.copies.get(table):
        known.append(
            f"its last copy, of {copy.copied_at:%Y-%m-%d}, had {copy.rows:,} rows and took {span(_seconds(copy))}"
        )
    return f": {'; '.join(known)}" if known else ", of unknown size"


def _seconds(copy: LoadRecord) -> float:
    """Return the time from the snapshot until the table was copied, with the tables that were copied with it."""
    if copy.copied_at is None or copy.copy_started_at is None:
        return 0.0
    return (copy.copied_at - copy.copy_started_at).total_seconds()


def _summary(trial: Trial) -> str:
    if any(table.table == PIPELINE for table in trial.tables):
        return f"{PIPELINE} stops"
    counts = Counter(table.outcome for table in trial.tables)
    said = [_SAID[outcome].format(several(counts[outcome], "table")) for outcome in reversed(ORDER) if counts[outcome]]
    return ", ".join([*said, f"{several(trial.unchanged, 'table')} unchanged"])

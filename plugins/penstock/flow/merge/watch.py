"""How far a merge is while Spark works: the driver says in a small file how many changes it has brought."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

from penstock.flow.context import Context
from penstock.flow.watching import watching
from penstock.landing import layout

_WHAT = "merging"


@contextmanager
def watched(ctx: Context, attempt: str) -> Iterator[None]:
    """Tell `ctx.stage` how many rows of an attempt are merged, for as long as the block runs."""
    if not ctx.is_watched:
        yield
        return
    path, total = layout.progress_file(ctx.name, attempt), 0

    def note_progress() -> None:
        nonlocal total
        if ctx.landing.exists(path):
            said = json.loads(ctx.landing.read_text(path))
            total = said["rows_due"]
            ctx.stage(_WHAT, said["rows"], total, said["rows"])

    with watching(note_progress, "penstock-merge-watch"):
        yield
    ctx.stage(_WHAT, total, total)

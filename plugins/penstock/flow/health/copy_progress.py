"""Whether a copy gets on inside one table: each range that Spark has read is a file in the landing zone, whoever runs the copy."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from penstock.errors import LakeError
from penstock.flow.context import Context
from penstock.landing import layout
from penstock.ledger.health import OpenCopy


def seen(ctx: Context, copies: Iterable[OpenCopy]) -> list[OpenCopy]:
    """Return the copies under way, each with the time of its newest file where that is later than what the ledger knows."""
    return [_seen(ctx, each) for each in copies]


def _seen(ctx: Context, each: OpenCopy) -> OpenCopy:
    if each.copy_id is None:
        return each
    try:
        landed = ctx.landing.newest(layout.copy_folder(ctx.name, each.copy_id))
    except LakeError:  # the copy cannot write either; then what the ledger knows counts
        return each
    return each if landed is None else replace(each, moved_at=max(each.moved_at, landed))

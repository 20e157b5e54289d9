"""Rows that go because the partition that held them is gone, or because others take their place: found by bounds, among all rows by now."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.engine import target, vectors
from penstock.engine.bounds import within
from penstock.engine.duck import Duck
from penstock.engine.order import Bounds, MergeAnswer, MergeOrder


def remove(db: Duck, order: MergeOrder, bounds: Sequence[Bounds], *, others: bool = False) -> MergeAnswer:
    """Write deletion vectors for the rows of the order's data files that lie within one of the bounds, or for all `others`."""
    if not order.target:
        return MergeAnswer()
    inside, used = within(order, bounds, "t{}".format)
    db.execute(
        "create or replace temp table matched as "
        "select file_index::bigint as file, file_row_number as position "
        f"from {target.read(db, order, used)} where {f'not {inside}' if others else inside}"
    )
    gone = target.leave_out_gone(db, order)
    places = target.places(db, "select file, position from matched")
    if not places:
        return MergeAnswer()
    written = vectors.write_vectors(db.files.lake, order.new_location("-deletes.puffin"), order.target, places, gone)
    return MergeAnswer(vectors=written, counts={"rows_deleted": sum(map(len, places.values()))})

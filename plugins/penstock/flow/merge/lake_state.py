"""Whether merges can go on in the lake: its table of cuts has to be as the ledger's last cut left it, and whole.

Where it is not, the lake, its catalog or the ledger was put back to another time, or lost, and no merge can publish.
"""

from penstock.compare.lake_reader import lake_reader
from penstock.errors import LakeError
from penstock.flow.context import Context
from penstock.flow.merge.attempts import prepared, read_attempt
from penstock.flow.merge.publish import cuts_snapshot
from penstock.lake.ddl import CUTS_TABLE

SLUGS = ("foreign-commit", "cuts-unreadable")


def problem(ctx: Context) -> LakeError | None:
    """Return why no merge can publish, None where one can; raises LakeError where catalog or store do not answer."""
    while True:
        expected = cuts_snapshot(ctx)
        found = None if expected is None else _problem(ctx, expected)
        if found is None or cuts_snapshot(ctx) == expected:  # else a merge has published meanwhile
            return found


def _problem(ctx: Context, expected: int) -> LakeError | None:
    target = (*ctx.pipeline.namespace.split("."), CUTS_TABLE)
    with lake_reader(ctx.pipeline.lake.catalog, ctx.catalog) as lake:
        try:
            found = lake.table(target)
            if found is not None and any(found.is_ours(each) for each in (expected, *_half_published(ctx))):
                for _ in found.batches(["cut_lsn"]):  # every file of it is read
                    pass
                return None
        except LakeError as error:
            if not isinstance(error.__cause__, (FileNotFoundError, ValueError)):  # not gone or damaged: no answer
                raise
            return LakeError("cuts-unreadable", f"expected to read the lake's table of cuts: {error.message}")
    came = "no such table" if found is None else f"snapshot {found.table.metadata.current_snapshot_id}"
    return LakeError(
        "foreign-commit",
        f"expected the lake's table of cuts at snapshot {expected}, as the last cut has left it, got {came}: the ledger, the "
        "catalog or the lake's files were put back to an earlier time, or another writer changed it",
    )


def _half_published(ctx: Context) -> list[int]:
    """Return the snapshot of a cut that the catalog may have and the ledger not yet: the next merge records it."""
    attempt = prepared(ctx)
    snapshot = None if attempt is None else read_attempt(ctx, attempt).result.cuts_snapshot_id
    return [] if snapshot is None else [snapshot]

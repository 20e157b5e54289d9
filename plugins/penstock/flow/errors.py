"""What happens after an error: the ledger remembers it, and an error that halts stops the pipeline."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from penstock.conditions import Directive, with_runbook
from penstock.errors import LedgerError, PenstockError
from penstock.flow.context import Context


@contextmanager
def record_errors(ctx: Context) -> Iterator[None]:
    """Record a PenstockError of the block in the ledger, halt the pipeline if its kind says so, and raise it on."""
    try:
        yield
    except PenstockError as error:
        ctx.progress(with_runbook(str(error), error.slug))
        with suppress(LedgerError):  # the first error is the one to show; the ledger may be what failed
            _record(ctx, error)
        raise


def _record(ctx: Context, error: PenstockError) -> None:
    if error.directive is Directive.HALT and error.slug != "pipeline-halted":
        ctx.ledger.pipelines.halt(ctx.name, slug=error.slug, reason=error.message)
    ctx.ledger.events.add(
        ctx.name,
        slug=error.slug,
        level="warning" if error.directive is Directive.RETRY else "error",
        message=error.message,
    )

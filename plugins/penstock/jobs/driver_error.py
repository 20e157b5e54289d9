"""The error by which a Spark driver ended, where it has a name: a small file next to the plan.

Whoever has submitted the application learns only that it failed; the file says why, so that the error keeps its name.
"""

from __future__ import annotations

import json

from penstock.errors import ConfigError, LakeError, LedgerError, PenstockError, ProtocolError, SourceError

_KINDS: dict[str, type[PenstockError]] = {
    kind.__name__: kind for kind in (ConfigError, SourceError, ProtocolError, LedgerError, LakeError)
}
UNWRITTEN = 74
"""The exit status of a driver that could write neither its result nor its error (EX_IOERR of sysexits.h)."""


def unwritten(plan: str) -> LakeError:
    """Return the error of a driver that ended with UNWRITTEN."""
    return LakeError(
        "landing-unwritable",
        f"expected Spark's driver to write its result next to {plan}, but it could write nothing there; make room, or give its user "
        "the right to write, then run again: nothing of this attempt is used",
    )


def file_of(plan: str) -> str:
    """Name the file of the error by which the application of a plan ended."""
    return f"{plan}.error"


def dumps(error: PenstockError) -> str:
    """Return an error as JSON text; one of a kind that only its room knows as the kind that it is of."""
    kind = next(name for name, each in _KINDS.items() if isinstance(error, each))
    return json.dumps({"kind": kind, "slug": error.slug, "message": error.message})


def loads(text: str) -> PenstockError:
    """Read what `dumps` wrote."""
    known = json.loads(text)
    return _KINDS[known["kind"]](known["slug"], known["message"])

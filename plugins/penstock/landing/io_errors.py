"""What a file system refuses, as Penstock's errors: which zone, why, and what to do next."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from penstock.errors import LakeError


@contextmanager
def unwritable(uri: str) -> Iterator[None]:
    """Turn OSError into LakeError("landing-unwritable")."""
    try:
        yield
    except OSError as error:
        raise LakeError(
            "landing-unwritable",
            f"expected to write {uri}, got: {_reason(error)}; "
            "make room or fix the landing zone, then run again: nothing of this attempt is used",
        ) from error


@contextmanager
def unreachable(uri: str) -> Iterator[None]:
    """Turn OSError into LakeError("landing-unreachable")."""
    try:
        yield
    except OSError as error:
        raise LakeError(
            "landing-unreachable",
            f"expected the landing zone to answer for {uri}, got: {_reason(error)}; "
            "check its address, credentials, rights and network, then run again",
        ) from error


def missing(uri: str, what: str) -> LakeError:
    """Say that a file which a manifest lists is absent or damaged."""
    return LakeError(
        "landing-file-missing",
        f"expected the landing file {uri} as a manifest lists it, but {what}; restore it, or copy its table again",
    )


def _reason(error: OSError) -> str:
    return error.strerror or str(error).partition("\n")[0]

"""What a file system refuses, as Penstock's errors: which zone, why, and what to do next."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from penstock.errors import LakeError
from penstock.store_trouble import Trouble, trouble_of_os


@contextmanager
def unwritable(uri: str) -> Iterator[None]:
    """Turn OSError into LakeError("landing-unwritable"), or "landing-unreachable" where a store does not answer, or refuses us."""
    try:
        yield
    except OSError as error:
        found = trouble_of_os(error)
        if found is Trouble.BUSY or (found is Trouble.REFUSED and error.errno is None):  # a disk has a number for it
            raise _unreachable(uri, error) from error
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
        raise _unreachable(uri, error) from error


def unread(uri: str, what: str, error: Exception) -> LakeError:
    """Say why a file that a manifest lists could not be read: the zone is in trouble, which proves nothing, or it is damaged."""
    if isinstance(error, OSError) and trouble_of_os(error):
        return _unreachable(uri, error)
    return missing(uri, f"{what} ({type(error).__name__})")


def missing(uri: str, what: str) -> LakeError:
    """Say that a file which a manifest lists is absent or damaged."""
    return LakeError(
        "landing-file-missing",
        f"expected the landing file {uri} as a manifest lists it, but {what}; restore it, or copy its table again",
    )


def _unreachable(uri: str, error: OSError) -> LakeError:
    return LakeError(
        "landing-unreachable",
        f"expected the landing zone to answer for {uri}, got: {_reason(error)}; "
        "check its address, credentials, rights and network, then run again",
    )


def _reason(error: OSError) -> str:
    return error.strerror or str(error).partition("\n")[0]

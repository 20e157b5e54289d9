"""Every way in which Penstock stops, by name.

    PenstockError
    ├── ConfigError     the pipeline file or a connection is wrong: the operator's to fix
    ├── SourceError     the source database refuses, lost something, or is not the one we knew
    ├── ProtocolError   bytes that pgoutput must not send: our bug or the server's
    ├── LedgerError     the control database refuses or contradicts us
    └── LakeError       landing zone, catalog or Spark: files, tables, merges

An error is raised with the slug of its condition (`penstock.conditions`), which says what happens next. No message
ever carries a row value or a secret. What stops one table alone is a `Trouble`, which is recorded and not raised.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from penstock.conditions import CONDITIONS, DIRECTIVES, Directive, Remedy, needs_copy, runbook
from penstock.printable import printable


class PenstockError(Exception):
    """Stop with a named condition and a message that states the expectation, what came, and the next step."""

    def __init__(self, slug: str, message: str) -> None:
        self.slug = slug
        self.directive: Directive = DIRECTIVES[slug]
        self.message = printable(message)  # it may hold names of the source's
        super().__init__(f"[{slug}] {self.message}")

    def __reduce__(self) -> tuple[type[PenstockError], tuple[str, str]]:
        return type(self), (self.slug, self.message)

    @property
    def runbook(self) -> str:
        """Name the page for the person on call, relative to the project."""
        return runbook(self.slug)


class ConfigError(PenstockError):
    """The pipeline file or a connection is wrong."""


class SourceError(PenstockError):
    """The source database refuses, lost something, or is not the one we knew."""


class ProtocolError(PenstockError):
    """The stream holds bytes that pgoutput must not send."""


class LedgerError(PenstockError):
    """The control database refuses or contradicts us."""


class NoLedgerError(LedgerError):
    """The control database has no ledger yet: the first bootstrap makes it."""


class LakeError(PenstockError):
    """The landing zone, the catalog or Spark failed."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """Say why a table stops, made where that is found, and what ends it.

    That is to `read` values of some columns, or rows of some partitions, or else to copy it; a `copy` of all of it; or to `resume` it
    once what the reason names is repaired. A `person` has to change the source first, and copy it then.
    """

    slug: str
    reason: str
    remedy: Remedy

    @classmethod
    def usual(cls, slug: str, reason: str) -> Self:
        """Return the trouble of a condition that is ended as usual."""
        return cls(slug, reason, CONDITIONS[slug].remedy)

    @property
    def needs_copy(self) -> bool:
        """Return whether a copy ends it that needs nobody: of all of the table, or of a part."""
        return needs_copy(self.remedy)

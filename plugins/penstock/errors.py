"""Every way in which Penstock stops, by name.

    PenstockError
    ├── ConfigError     the pipeline file or a connection is wrong: the operator's to fix
    ├── SourceError     the source database refuses, lost something, or is not the one we knew
    ├── ProtocolError   bytes that pgoutput must not send: our bug or the server's
    ├── LedgerError     the control database refuses or contradicts us
    └── LakeError       landing zone, catalog or Spark: files, tables, merges

An error is raised with the slug of its kind. The kind says what happens next (`Directive`), and
`docs/runbooks/<slug>.md` tells the person on call what to do. No message ever carries a row value or a secret.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Directive(Enum):
    """Say what an error does to the pipeline."""

    RETRY = "retry"  # the same call may succeed later; nothing was lost
    HALT = "halt"  # the pipeline stops until a person has decided
    PAUSE = "pause"  # one table stops; capture and all other tables continue
    PAGE = "page"  # every try would meet it again: a person gets an alert at once; it continues by itself once fixed
    FAIL = "fail"  # this call was wrong; nothing changed
    NOTE = "note"  # recorded as an event, never raised; everything continues


@dataclass(frozen=True, slots=True)
class Kind:
    """Describe one kind of error: what it does and one sentence for the operator."""

    directive: Directive
    meaning: str


def _kinds() -> dict[str, Kind]:
    retry, halt, pause = Directive.RETRY, Directive.HALT, Directive.PAUSE
    page, fail, note = Directive.PAGE, Directive.FAIL, Directive.NOTE
    return {
        # the operator's input
        "config-invalid": Kind(fail, "The pipeline file does not say what Penstock expects."),
        "connection-missing": Kind(fail, "A connection that the pipeline names is not defined."),
        "alert-undelivered": Kind(retry, "An alert could not be delivered on one of its channels."),
        "preflight-failed": Kind(fail, "The source is not ready for this pipeline; the report lists each finding."),
        "no-matching-tables": Kind(fail, "A table pattern of the pipeline matches no table."),
        "no-usable-identity": Kind(fail, "A table would refuse updates or deletes once published."),
        "table-unknown": Kind(fail, "The pipeline has no table of this name."),
        "range-invalid": Kind(fail, "The places given are not a range: the wrong way round, or in the future."),
        "range-unavailable": Kind(fail, "The landing zone no longer holds, or never held, what this range needs."),
        "shadow-exists": Kind(fail, "The lake has a table under the name that the shadow would get."),
        "table-not-ready": Kind(fail, "The table is in a state in which this cannot be done to it."),
        # the source
        "source-unreachable": Kind(retry, "The source did not accept the connection or closed it."),
        "source-auth": Kind(page, "The source refused the login or the role lacks a privilege."),
        "source-timeout": Kind(retry, "The source did not answer within the time limit."),
        "source-out-of-memory": Kind(retry, "The source ran out of memory while it decoded or read."),
        "source-disk-full": Kind(page, "The source's disk is full."),
        "source-corrupt": Kind(page, "The source found its own files damaged while it read or decoded."),
        "decoding-limit": Kind(page, "The source's limits do not allow what a window or a row takes."),
        "recovery-conflict": Kind(retry, "The standby cancelled the read to replay what its primary has done."),
        "source-error": Kind(retry, "The source answered with an error that has no kind of its own."),
        "source-changed": Kind(halt, "Another server, timeline or database answers behind the source's address."),
        "publication-missing": Kind(halt, "The publication is gone, was created again, or was created after the slot."),
        "table-unpublished": Kind(fail, "The table is not in the publication any more."),
        "slot-missing": Kind(halt, "The replication slot does not exist."),
        "slot-exists": Kind(fail, "A slot of this name exists and is not known to belong to the pipeline."),
        "slot-dropped": Kind(halt, "Slot health has dropped the pipeline's slot, as its policy says."),
        "slot-lost": Kind(halt, "The server has removed WAL that the slot still needed."),
        "slot-ahead": Kind(halt, "The slot is ahead of the ledger: another session consumed changes."),
        "nothing-to-recover": Kind(fail, "The slot can be read on: a recovery would copy everything for nothing."),
        "slot-in-use": Kind(retry, "Another session holds the slot or the pipeline's lock."),
        "slot-unusable": Kind(halt, "The slot was made with options that a batch reader cannot use."),
        "no-free-slot": Kind(fail, "The server has no free replication slot."),
        "slot-creation-blocked": Kind(retry, "Open transactions kept the slot from being created in time."),
        "snapshot-gone": Kind(retry, "The exported snapshot disappeared while tables were copied."),
        "table-rewritten": Kind(retry, "A table was truncated, rewritten or altered before its copy had read it."),
        "copy-failed": Kind(pause, "A table could not be copied by bootstrap; its reason says why."),
        "table-joining": Kind(retry, "Transactions that were open when a table joined keep it from being copied."),
        "table-added": Kind(note, "A table joined the publication and waits for its copy."),
        "table-removed": Kind(note, "A table left the publication, or was dropped at the source."),
        "publication-differs": Kind(note, "The publication is not what the patterns choose, and not ours to alter."),
        # bytes
        "protocol-truncated": Kind(halt, "A message ended before its last field, or went on after it."),
        "protocol-unknown": Kind(halt, "A message, flag or column kind is not part of the protocol."),
        "protocol-sequence": Kind(halt, "A message came at a place where the protocol does not allow it."),
        # the ledger
        "ledger-unreachable": Kind(retry, "The control database did not accept the connection or closed it."),
        "ledger-not-migrated": Kind(fail, "The ledger's schema is not at the version this code needs."),
        "ledger-conflict": Kind(retry, "Another run holds a newer attempt; this one may change nothing."),
        "work-under-way": Kind(retry, "Another process does work on this pipeline that must not run twice at once."),
        "rebuild-open": Kind(fail, "The table is being rebuilt already, in another way."),
        "rebuild-given-up": Kind(fail, "A table could not be rebuilt; the one that readers see is as it was."),
        "pipeline-halted": Kind(halt, "The pipeline is halted; its reason says why."),
        "not-bootstrapped": Kind(fail, "The pipeline has no slot yet: run bootstrap first."),
        # the lake
        "landing-unreachable": Kind(retry, "The landing zone did not answer."),
        "landing-unwritable": Kind(retry, "The landing zone could not be written."),
        "landing-file-missing": Kind(halt, "A landing file that a manifest lists is not there or is damaged."),
        "landing-version": Kind(halt, "A landing file has a contract version this code does not read."),
        "interval-invalid": Kind(fail, "An interval to fill ends before it begins, or is not over yet."),
        "interval-gone": Kind(fail, "The landing zone does not hold all changes of an interval, or no longer."),
        "interval-not-captured": Kind(fail, "The changes of an interval are not captured yet."),
        "target-clash": Kind(page, "Two source tables would share one target table."),
        "spark-failed": Kind(retry, "The Spark application ended without a result."),
        "catalog-unreachable": Kind(
            retry, "The lake's catalog did not accept the connection, closed it, or is not set up."
        ),
        "lake-unreadable": Kind(retry, "A file of the lake is gone or damaged, or its store did not answer."),
        "publish-conflict": Kind(retry, "Another writer moved a lake table between our read and our publish."),
        "foreign-commit": Kind(pause, "The lake table has commits that Penstock did not make."),
        "schema-change": Kind(pause, "The source table changed in a way that the stream does not carry."),
        "publication-changed": Kind(pause, "The publication was altered: it may have left out changes of the table."),
        "transaction-skipped": Kind(
            pause, "A transaction that touched the table could not be decoded and was left out."
        ),
        "divergence": Kind(pause, "A change refers to a row that neither the batch nor the lake has."),
        "merge-conflict": Kind(pause, "Changes met rows that should or should not have been there."),
        "merge-failed": Kind(pause, "The merge of one table ended with an error that has no kind of its own."),
        "misfit-refused": Kind(pause, "A value does not fit its column and the policy is to stop."),
        "verify-late": Kind(retry, "Capture and merge did not come to the compared position in time."),
        "verify-differs": Kind(fail, "A verification found a table in which source and lake differ."),
        "verify-unreadable": Kind(fail, "A table could not be compared: the source or the lake could not be read."),
        "comparison-differs": Kind(page, "Source and lake differ at the compared position."),
    }


KINDS: dict[str, Kind] = _kinds()
PAGED = frozenset(slug for slug, kind in KINDS.items() if kind.directive is Directive.PAGE)
"""The kinds that open an alarm of their own name (`penstock.alarms`) on the task that met them."""


UNSENT = frozenset({"schema-change", "publication-changed", "transaction-skipped", "copy-failed"})
"""The kinds of pause to which a new copy is the answer: something happened that the stream, or the first copy, does not carry."""


class PenstockError(Exception):
    """Stop with a named kind and a message that states the expectation, what came, and the next step."""

    def __init__(self, slug: str, message: str) -> None:
        self.slug = slug
        self.kind = KINDS[slug]
        self.message = message
        super().__init__(f"[{slug}] {message}")

    def __reduce__(self) -> tuple[type[PenstockError], tuple[str, str]]:
        return type(self), (self.slug, self.message)

    @property
    def directive(self) -> Directive:
        """Return what this error does to the pipeline."""
        return self.kind.directive

    @property
    def runbook(self) -> str:
        """Name the page for the person on call, relative to the project."""
        return f"docs/runbooks/{self.slug}.md"


class ConfigError(PenstockError):
    """The pipeline file or a connection is wrong."""


class SourceError(PenstockError):
    """The source database refuses, lost something, or is not the one we knew."""


class ProtocolError(PenstockError):
    """The stream holds bytes that pgoutput must not send."""


class LedgerError(PenstockError):
    """The control database refuses or contradicts us."""


class LakeError(PenstockError):
    """The landing zone, the catalog or Spark failed."""

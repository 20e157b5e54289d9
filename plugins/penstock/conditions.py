"""The catalogue of conditions: whatever Penstock stops for, notes, or alerts about, by name.

A condition may be met as an error, with what follows from it (`Directive`), be watched as an alarm, or both.
`docs/runbooks/<slug>.md` says what the person on call should do, and the index there repeats this table. Of a wrong call, which
calls nobody, a section of one page says it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Literal

Level = Literal["warn", "critical"]
Remedy = Literal["read", "copy", "resume", "person"]
LEVELS: tuple[Level, ...] = ("warn", "critical")


class Directive(Enum):
    """Say what an error does to the pipeline, and to the task of Airflow that met it."""

    RETRY = "retry"  # the same call may succeed later; nothing was lost: the task is tried again
    HALT = "halt"  # the pipeline stops until a person has decided; the task fails without another try, as below
    PAUSE = "pause"  # one table stops; capture and all other tables continue
    PAGE = "page"  # every try would meet it again: a person gets an alert at once; it continues by itself once fixed
    FAIL = "fail"  # this call was wrong; nothing changed
    NOTE = "note"  # recorded as an event, never raised; everything continues


@dataclass(frozen=True, slots=True)
class Alarm:
    """Describe the alarm of a condition: its highest level, and how fast things get worse.

    An alarm concerns one subject (a slot, a session, a setting); it opens once and closes once. `dag` is the verb of the
    DAG that ends it, or that shows why it lasts.
    """

    level: Level
    worsens: str
    dag: str | None = None


@dataclass(frozen=True, slots=True)
class Condition:
    """Describe one condition by one sentence for the operator, and say how it is met: as an error, an alarm, or both.

    `remedy` is what usually ends a pause: a copy where something happened that the stream, or the first copy, does not carry.
    `is_wrong_call` marks an error that is over with the call that met it.
    """

    meaning: str
    directive: Directive | None = None
    alarm: Alarm | None = None
    remedy: Remedy = "resume"
    is_wrong_call: bool = False


def _warn(worsens: str, dag: str | None = None) -> Alarm:
    return Alarm("warn", worsens, dag)


def _critical(worsens: str = "as fast as the source writes", dag: str | None = None) -> Alarm:
    return Alarm("critical", worsens, dag)


def _wrong_call(meaning: str) -> Condition:
    return Condition(meaning, Directive.FAIL, is_wrong_call=True)


RETRY, HALT, PAUSE, PAGE, FAIL, NOTE = Directive
CONDITIONS = {
    # the operator's input
    "config-invalid": Condition("The pipeline file does not say what Penstock expects.", FAIL),
    "connection-missing": _wrong_call("A connection that the pipeline names is not defined."),
    "airflow-unreachable": Condition("Airflow's own command line did not answer.", FAIL),
    "alert-undelivered": Condition("An alert could not be delivered on one of its channels.", RETRY),
    "preflight-failed": Condition("The source is not ready for this pipeline; the report lists each finding.", FAIL),
    "no-matching-tables": Condition("A table pattern of the pipeline matches no table.", FAIL),
    "no-usable-identity": Condition(
        "A table refuses the application's updates or deletes because it is published, or would.",
        FAIL,
        _critical("with every update that the application cannot make"),
        remedy="person",
    ),
    "table-unknown": _wrong_call("The pipeline has no table of this name."),
    "range-invalid": _wrong_call("The positions given are not a range: the wrong way round, or not landed yet."),
    "range-unavailable": _wrong_call("The landing zone no longer holds, or never held, what this range needs."),
    "shadow-exists": _wrong_call("The lake has a table under the name that the shadow would get."),
    "table-not-ready": _wrong_call("The table's state does not allow this yet."),
    "scratch-unavailable": Condition("The scratch database of a migration's trial could not be made.", FAIL),
    "migration-failed": _wrong_call("A migration did not run to its end on the scratch database."),
    # the source
    "source-unreachable": Condition(
        "The source could not be asked: it did not accept the connection, or closed it.",
        RETRY,
        _critical("unknown: the slot is not observed", "slot_health"),
    ),
    "source-auth": Condition(
        "The source refused the login or the role lacks a privilege.", PAGE, _critical(dag="resume")
    ),
    "source-timeout": Condition("The source did not answer within the time limit.", RETRY),
    "source-out-of-memory": Condition("The source ran out of memory while it decoded or read.", RETRY),
    "source-disk-full": Condition(
        "The source's disk is full.", PAGE, _critical("at once: without room the server stops")
    ),
    "source-corrupt": Condition(
        "The source found its own files damaged while it read or decoded.",
        PAGE,
        _critical("unknown: more may be damaged"),
    ),
    "decoding-limit": Condition("The source's limits do not allow what a window or a row takes.", PAGE, _critical()),
    "recovery-conflict": Condition("The standby cancelled the read, because it conflicted with replay.", RETRY),
    "source-error": Condition("The source answered with an error that has no slug of its own.", RETRY),
    "source-changed": Condition("Another server, timeline or database answers behind the source's address.", HALT),
    "publication-missing": Condition(
        "The publication is gone, was created again, or was created after the slot.", HALT
    ),
    "table-unpublished": _wrong_call("The table is not in the publication any more."),
    "slot-missing": Condition("The replication slot does not exist.", HALT, _critical("it is final", "recover")),
    "slot-exists": Condition("A slot of this name exists and is not known to belong to the pipeline.", FAIL),
    "slot-dropped": Condition("Slot health has dropped the pipeline's slot, as its policy says.", HALT),
    "slot-lost": Condition(
        "The slot was invalidated and can never be read again.", HALT, _critical("it is final", "recover")
    ),
    "wal-unreadable": Condition("The server cannot read its own WAL where the slot stands.", HALT),
    "slot-ahead": Condition("The slot is ahead of the ledger: another session consumed changes.", HALT),
    "nothing-to-recover": _wrong_call("The slot can still be read: a recovery would copy everything for nothing."),
    "slot-in-use": Condition("Another session holds the slot.", RETRY),
    "slot-unusable": Condition("The slot was made with options that a batch reader cannot use.", HALT),
    "no-free-slot": Condition("The server has no free replication slot.", FAIL),
    "slot-creation-blocked": Condition("Open transactions kept the slot from being created in time.", RETRY),
    "snapshot-gone": Condition("The exported snapshot disappeared while tables were copied.", RETRY),
    "table-rewritten": Condition("A table was truncated, rewritten or altered before its copy had read it.", RETRY),
    "copy-failed": Condition("A table could not be copied by bootstrap; its reason says why.", PAUSE, remedy="copy"),
    "planning-failed": Condition(
        "A function in a table's index or statistics fails whenever a query over the table is planned.", PAUSE
    ),
    "table-joining": Condition("Transactions that were open when a table joined keep it from being copied.", RETRY),
    "table-added": Condition("A table joined the publication and waits for its copy.", NOTE),
    "schema-followed": Condition("A table's shape changed at the source, and the lake's table follows.", NOTE),
    "table-removed": Condition("A table left the publication, or was dropped at the source.", NOTE),
    "text-not-stored": Condition("A column's text is the name of another object, and changes with it unseen.", NOTE),
    "publication-differs": Condition(
        "The publication is not what the patterns choose, and Penstock may not alter it.", NOTE
    ),
    # bytes
    "protocol-truncated": Condition("A message ended before its last field, or continued after it.", HALT),
    "protocol-unknown": Condition("A message, flag or column kind is not part of the protocol.", HALT),
    "protocol-sequence": Condition("A message came at a place where the protocol does not allow it.", HALT),
    # the ledger
    "ledger-unreachable": Condition("The control database did not accept the connection or closed it.", RETRY),
    "ledger-not-migrated": _wrong_call("The ledger's schema is not at the version this code needs."),
    "ledger-conflict": Condition("Another run holds a newer attempt; this one may change nothing.", RETRY),
    "work-under-way": Condition("Another process does work on this pipeline that must not run twice at once.", RETRY),
    "rebuild-open": _wrong_call("The table is being rebuilt already, in another way."),
    "archive-kept": Condition("A copy would lose rows that only the lake has: their partitions are gone.", FAIL),
    "rebuild-given-up": Condition("A table could not be rebuilt; the one that readers see is as it was.", FAIL),
    "pipeline-halted": Condition("The pipeline is halted; its reason says why.", HALT, _critical(dag="resume")),
    "not-bootstrapped": _wrong_call("The pipeline has no slot yet: run bootstrap first."),
    # the lake
    "landing-unreachable": Condition("The landing zone did not answer.", RETRY),
    "landing-unwritable": Condition("The landing zone could not be written.", RETRY),
    "landing-changed": Condition(
        "Another landing zone is behind landing.uri than the one in which the pipeline lands.",
        PAGE,
        _critical(dag="resume"),
    ),
    "landing-file-missing": Condition("A landing file that a manifest lists is not there or is damaged.", HALT),
    "landing-version": Condition("A landing file has a contract version this code does not read.", HALT),
    "interval-invalid": _wrong_call("An interval to fill ends before it begins, or is not over yet."),
    "interval-gone": Condition("The landing zone does not, or no longer, hold all changes of an interval.", FAIL),
    "interval-not-captured": _wrong_call("The changes of an interval are not captured yet."),
    "target-clash": Condition("Two source tables would share one target table.", PAGE, _critical(dag="resume")),
    "spark-failed": Condition("The Spark application ended without a result.", RETRY),
    "catalog-unreachable": Condition(
        "The lake's catalog did not accept the connection, closed it, or is not set up.", RETRY
    ),
    "lake-unreachable": Condition(
        "The lake's store did not answer, asked to be asked less often, or refused the login.", RETRY
    ),
    "lake-unwritable": Condition("The lake's store could not be written: it is full.", RETRY),
    "lake-unreadable": Condition("A file of the lake is gone or damaged, or was refused.", RETRY),
    "clock-skew": Condition(
        "The clock of Spark's driver is not the ledger's: it is ahead or behind by more than half a minute.",
        PAGE,
        _critical("as time passes: nothing is published", "merge"),
    ),
    "publish-conflict": Condition("Another writer moved a lake table between our read and our publish.", RETRY),
    "foreign-commit": Condition("The lake table has commits that Penstock did not make.", PAUSE),
    "cuts-unreadable": Condition(
        "The lake's table of cuts cannot be read: its files are gone or damaged.",
        PAGE,
        _critical("as time passes: no merge can publish", "resync"),
    ),
    "storage-unsupported": Condition(
        "The lake table is stored in a way that a merge cannot write: format, codec, encryption or a transform.",
        PAUSE,
    ),
    "schema-change": Condition(
        "The source table changed in a way that the stream does not carry.", PAUSE, remedy="copy"
    ),
    "publication-changed": Condition(
        "The publication was altered: it may have left out changes of the table.", PAUSE, remedy="copy"
    ),
    "transaction-skipped": Condition(
        "A transaction that touched the table could not be decoded and was left out.", PAUSE, remedy="copy"
    ),
    "divergence": Condition("A change refers to a row that neither the batch nor the lake has.", PAUSE),
    "merge-conflict": Condition("Changes met absent rows, or rows that should have been absent.", PAUSE),
    "merge-failed": Condition("The merge of one table ended with an error that has no slug of its own.", PAUSE),
    "misfit-refused": Condition("A value does not fit its column and the policy is to stop.", PAUSE),
    "verify-late": Condition("Capture and merge did not reach the compared position in time.", RETRY),
    "verify-differs": Condition(
        "A verification found a table in which source and lake differ.",
        FAIL,
        _critical("with every reader who trusts it", "resync"),
    ),
    "verify-unreadable": Condition(
        "A table could not be compared: the source or the lake could not be read.",
        FAIL,
        _critical("its rows are unproven", "verify"),
    ),
    # alarms about the pipeline's slot
    "slot-retained": Condition(
        "The slot keeps more WAL on the source's disk than the limit.", alarm=_critical(dag="capture")
    ),
    "slot-unread": Condition("More WAL is waiting to be captured than the limit.", alarm=_critical(dag="capture")),
    "slot-unreserved": Condition(
        "The slot will be lost at the next checkpoint.",
        alarm=_critical("minutes, until the next checkpoint", "capture"),
    ),
    "slot-orphaned": Condition("The slot belongs to a pipeline that has no table.", alarm=_critical()),
    "slot-stalled": Condition(
        "The slot's confirmed position has stood still over several schedules.", alarm=_critical(dag="capture")
    ),
    "slot-synced": Condition(
        "The slot is a standby's copy of its primary's and cannot be read here.",
        alarm=_critical("nothing is captured"),
    ),
    "slot-idle-timeout": Condition(
        "The server may invalidate the slot for idleness between two captures.",
        alarm=_critical("one missed run can do it"),
    ),
    "catalog-xmin-old": Condition(
        "The slot holds back the vacuuming of the catalogs for too many transactions.", alarm=_critical("days")
    ),
    "decoding-spills": Condition(
        "Decoding writes most of what it reads to the source's disk.", alarm=_warn("it only costs time")
    ),
    # alarms about capture
    "capture-paused": Condition("The capture DAG is paused.", alarm=_critical(dag="capture")),
    "capture-failing": Condition("The capture DAG fails.", alarm=_critical(dag="capture")),
    "capture-too-slow": Condition(
        "The source writes WAL faster than capture reads it.",
        alarm=_critical("ever faster: a longer queue reads slower", "capture"),
    ),
    "publication-narrow": Condition(
        "The publication does not send every kind of change.",
        alarm=_critical("with every change that it leaves out"),
    ),
    "ddl-trigger-missing": Condition(
        "The event trigger that source.ddl_trigger asks for is missing, disabled or of another version.",
        alarm=_warn("not at all: a change of columns may cost a copy"),
    ),
    # alarms about the server
    "slot-abandoned": Condition("A slot that is not the pipeline's is inactive and keeps WAL.", alarm=_critical()),
    "slots-nearly-full": Condition(
        "Few replication slots or WAL senders are free.", alarm=_warn("the next that needs one is refused")
    ),
    "transaction-open-long": Condition(
        "A transaction that has written has been open for long.",
        alarm=_warn("slowly: WAL stays, every capture reads more"),
    ),
    "transaction-prepared-long": Condition(
        "A prepared transaction has been open for long.",
        alarm=_warn("slowly: WAL stays, every capture reads more"),
    ),
    "standby-feedback-off": Condition(
        "The source is a standby whose primary may vacuum what the slot needs.",
        alarm=_critical("any vacuum can do it"),
    ),
    # alarms about the lake
    "divergence-suspected": Condition(
        "Changes met other rows in the lake than at the source: the table may have diverged.",
        alarm=_critical("with every reader who trusts it", "verify"),
    ),
    "lake-stale": Condition(
        "The newest cut shows the source as it was longer ago than the limit.",
        alarm=_critical("as time passes: readers decide by old rows", "merge"),
    ),
    "merge-paused": Condition(
        "The merge DAG is paused while changes wait for it.", alarm=_critical("as time passes", "merge")
    ),
    "merge-failing": Condition(
        "The merge DAG fails while changes wait for it.", alarm=_critical("as time passes", "merge")
    ),
    "merge-late": Condition(
        "Landed changes wait for a merge, and no run of it comes.", alarm=_critical("as time passes", "merge")
    ),
    "table-paused": Condition(
        "A table is paused: readers see it as it was.", alarm=_warn("as time passes: its rows get older", "resume")
    ),
    "resync-failing": Condition(
        "Tables wait for a copy whose DAG fails or is paused.", alarm=_warn("as time passes", "resync")
    ),
    "copy-stalled": Condition(
        "A copy or a rebuild under way has not got on for long.",
        alarm=_warn("slowly: a copy's snapshot holds back vacuum on the source", "resync"),
    ),
    "maintain-overdue": Condition(
        "Maintenance fails, is paused, or has not run for two schedules.",
        alarm=_warn("slowly: reads get slower, the lake grows", "maintain"),
    ),
    "changelog-overdue": Condition(
        "Changelogs are not filled any more: the DAG fails, is paused or does not run.",
        alarm=_warn("until landing.retention: then an interval cannot be filled any more", "changelog"),
    ),
    "verify-overdue": Condition(
        "Scheduled verifications fail, are paused, or have not run for two schedules.",
        alarm=_warn("not by itself: what differs stays unseen", "verify"),
    ),
    # alarms about what the pipeline stands on
    "storage-nearly-full": Condition(
        "Little is free on the disk of the landing zone or of the lake.",
        alarm=_critical("as fast as the source writes, and faster during copies", "maintain"),
    ),
    "slot-unwatched": Condition(
        "Slot health is paused or silent: no alarm opens.", alarm=_critical("unseen", "slot_health")
    ),
    "alerts-unheard": Condition(
        "Critical alarms have no channel, although warnings have one.", alarm=_warn("with the next alarm")
    ),
    "clocks-differ": Condition(
        "The clock of the source or of an Airflow worker is not the ledger's, by more than half a minute.",
        alarm=_warn("not by itself: times of two clocks are compared"),
    ),
    # events of a run or of a changelog
    "dag-failed": Condition("A DAG run failed after all its tries, was killed, or took too long.", NOTE),
    "changes-late": Condition(
        "Changes belong to an interval of the changelogs that was filled before: fill it again.", NOTE
    ),
}
DIRECTIVES = {slug: each.directive for slug, each in CONDITIONS.items() if each.directive is not None}
ALARMS = {slug: each.alarm for slug, each in CONDITIONS.items() if each.alarm is not None}
PAGED = frozenset(slug for slug, directive in DIRECTIVES.items() if directive is Directive.PAGE)
"""The errors that open an alarm of their own name on the task that met them."""
WRONG_CALLS = frozenset(slug for slug, each in CONDITIONS.items() if each.is_wrong_call)
WRONG_CALLS_PAGE = "wrong-calls"


def runbook(slug: str) -> str:
    """Name the page for the person on call, relative to the project, with the section on a page of several."""
    page = f"{WRONG_CALLS_PAGE}.md#{slug}" if slug in WRONG_CALLS else f"{slug}.md"
    return f"docs/runbooks/{page}"


def runbook_text(home: Path, slug: str) -> str:
    """Return what a condition's runbook says, as a page; `home` is the project folder."""
    path, _, section = runbook(slug).partition("#")
    text = (home / path).read_text(encoding="utf-8")
    if not section:
        return text
    _, _, after = text.partition(f"\n## {section}\n")
    return f"# {section}\n" + after.partition("\n## ")[0]


def with_runbook(message: str, slug: str) -> str:
    """Return a message as a sentence, and after it the page for the person on call."""
    return f"{message.rstrip('. ')}. See {runbook(slug)}."


def needs_copy(remedy: Remedy | None) -> bool:
    """Return whether a table waits for what a copy brings."""
    return remedy in ("read", "copy")

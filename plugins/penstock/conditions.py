"""The catalogue of conditions: whatever Penstock stops for, notes, or alerts about, by name.

A condition may be met as an error, with what follows from it (`Directive`), be watched as an alarm, or both.
`docs/runbooks/<slug>.md` says what the person on call should do, and the index there repeats this table. Of a wrong call, which
calls nobody, a section of one page says it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Literal, get_args

Level = Literal["warn", "critical"]
Remedy = Literal["read", "copy", "resume", "person"]
LEVELS: tuple[Level, ...] = get_args(Level)


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
    dag: str | None
    worsens: str


@dataclass(frozen=True, slots=True)
class Condition:
    """Describe one condition by one sentence for the operator, and say how it is met: as an error, an alarm, or both.

    `remedy` is what usually ends a pause, or a halt: a copy where something happened that the stream, or the first copy, does not carry.
    `is_wrong_call` marks an error that is over with the call that met it.
    """

    meaning: str
    directive: Directive | None
    alarm: Alarm | None
    remedy: Remedy
    is_wrong_call: bool


_CONDITIONS = """
# the operator's input
config-invalid            fail  The pipeline file does not say what Penstock expects.
connection-missing        call  A connection that the pipeline names is not defined.
airflow-unreachable       fail  Airflow's own command line did not answer.
alert-undelivered         retry An alert could not be delivered on one of its channels.
preflight-failed          fail  The source is not ready for this pipeline; the report lists each finding.
no-matching-tables        fail  A table pattern of the pipeline matches no table.
no-usable-identity        fail  A table refuses the application's updates or deletes because it is published, or would.
table-unknown             call  The pipeline has no table of this name.
range-invalid             call  The positions given are not a range: the wrong way round, or not landed yet.
range-unavailable         call  The landing zone no longer holds, or never held, what this range needs.
shadow-exists             call  The lake has a table under the name that the shadow would get.
table-not-ready           call  The table's state does not allow this yet.
scratch-unavailable       fail  The scratch database of a migration's trial could not be made.
migration-failed          call  A migration did not run to its end on the scratch database.
# the source
source-unreachable        retry The source could not be asked: it did not accept the connection, or closed it.
source-auth               page  The source refused the login or the role lacks a privilege.
source-timeout            retry The source did not answer within the time limit.
source-out-of-memory      retry The source ran out of memory while it decoded or read.
source-disk-full          page  The source's disk is full.
source-corrupt            page  The source found its own files damaged while it read or decoded.
decoding-limit            page  The source's limits do not allow what a window or a row takes.
recovery-conflict         retry The standby cancelled the read, because it conflicted with replay.
source-error              retry The source answered with an error that has no slug of its own.
source-changed            halt  Another server, timeline or database answers behind the source's address.
publication-missing       halt  The publication is gone, was created again, or was created after the slot.
table-unpublished         call  The table is not in the publication any more.
slot-missing              halt  The replication slot does not exist.
slot-exists               fail  A slot of this name exists and is not known to belong to the pipeline.
slot-dropped              halt  Slot health has dropped the pipeline's slot, as its policy says.
slot-lost                 halt  The slot was invalidated and can never be read again.
wal-unreadable            halt  The server cannot read its own WAL where the slot stands.
slot-ahead                halt  The slot is ahead of the ledger: another session consumed changes.
nothing-to-recover        call  The slot can still be read: a recovery would copy everything for nothing.
slot-in-use               retry Another session holds the slot.
slot-unusable             halt  The slot was made with options that a batch reader cannot use.
no-free-slot              fail  The server has no free replication slot.
slot-creation-blocked     retry Open transactions kept the slot from being created in time.
snapshot-gone             retry The exported snapshot disappeared while tables were copied.
table-rewritten           retry A table was truncated, rewritten or altered before its copy had read it.
copy-failed               pause A table could not be copied by bootstrap; its reason says why.
planning-failed           pause A function in a table's index or statistics fails whenever a query over the table is
                                planned.
table-joining             retry Transactions that were open when a table joined, or a label was renamed, keep it from being copied.
table-added               note  A table joined the publication and waits for its copy.
schema-followed           note  A table's shape changed at the source, and the lake's table follows.
table-removed             note  A table left the publication, or was dropped at the source.
text-not-stored           note  A column's text is the name of another object, and changes with it unseen.
publication-differs       note  The publication is not what the patterns choose, and Penstock may not alter it.
# bytes
protocol-truncated        halt  A message ended before its last field, or continued after it.
protocol-unknown          halt  A message, flag or column kind is not part of the protocol.
protocol-sequence         halt  A message came at a place where the protocol does not allow it.
# the ledger
ledger-unreachable        retry The control database did not accept the connection or closed it.
ledger-not-migrated       call  The ledger's schema is not at the version this code needs.
ledger-conflict           retry Another run holds a newer attempt; this one may change nothing.
work-under-way            retry Another process does work on this pipeline that must not run twice at once.
rebuild-open              call  The table is being rebuilt already, in another way.
archive-kept              fail  A copy would lose rows that only the lake has: their partitions are gone.
rebuild-given-up          fail  A table could not be rebuilt; the one that readers see is as it was.
pipeline-halted           halt  The pipeline is halted; its reason says why.
not-bootstrapped          call  The pipeline has no slot yet: run bootstrap first.
# the lake
landing-unreachable       retry The landing zone did not answer.
landing-unwritable        retry The landing zone could not be written.
landing-changed           page  Another landing zone is behind landing.uri than the one in which the pipeline lands.
landing-file-missing      halt  A landing file that a manifest lists is not there or is damaged.
landing-version           halt  A landing file has a contract version this code does not read.
interval-invalid          call  An interval to fill ends before it begins, or is not over yet.
interval-gone             fail  The landing zone does not, or no longer, hold all changes of an interval.
interval-not-captured     call  The changes of an interval are not captured yet.
target-clash              page  Two source tables would share one target table.
spark-failed              retry The Spark application ended without a result.
catalog-unreachable       retry The lake's catalog did not accept the connection, closed it, or is not set up.
lake-unreachable          retry The lake's store did not answer, asked to be asked less often, or refused the login.
lake-unwritable           retry The lake's store could not be written: it is full.
lake-unreadable           retry A file of the lake is gone or damaged, or was refused.
clock-skew                page  The clock of Spark's driver is not the ledger's: it is ahead or behind by more than half
                                a minute.
publish-conflict          retry Another writer moved a lake table between our read and our publish.
foreign-commit            pause The lake table has commits that Penstock did not make.
cuts-unreadable           page  The lake's table of cuts cannot be read: its files are gone or damaged.
storage-unsupported       pause The lake table is stored in a way that a merge cannot write: format, codec, encryption
                                or a transform.
schema-change             pause The source table changed in a way that the stream does not carry.
publication-changed       pause The publication was altered: it may have left out changes of the table.
transaction-skipped       pause A transaction that touched the table could not be decoded and was left out.
divergence                pause A change refers to a row that neither the batch nor the lake has.
merge-conflict            pause Changes met absent rows, or rows that should have been absent.
merge-failed              pause The merge of one table ended with an error that has no slug of its own.
misfit-refused            pause A value does not fit its column and the policy is to stop.
verify-late               retry Capture and merge did not reach the compared position in time.
verify-differs            fail  A verification found a table in which source and lake differ.
verify-unreadable         fail  A table could not be compared: the source or the lake could not be read.
# alarms about the pipeline's slot
slot-retained             alarm The slot keeps more WAL on the source's disk than the limit.
slot-unread               alarm More WAL is waiting to be captured than the limit.
slot-unreserved           alarm The slot will be lost at the next checkpoint.
slot-orphaned             alarm The slot belongs to a pipeline that has no table.
slot-stalled              alarm The slot's confirmed position has stood still over several schedules.
slot-synced               alarm The slot is a standby's copy of its primary's and cannot be read here.
slot-idle-timeout         alarm The server may invalidate the slot for idleness between two captures.
catalog-xmin-old          alarm The slot holds back the vacuuming of the catalogs for too many transactions.
decoding-spills           alarm Decoding writes most of what it reads to the source's disk.
# alarms about capture
capture-paused            alarm The capture DAG is paused.
capture-failing           alarm The capture DAG fails.
capture-too-slow          alarm The source writes WAL faster than capture reads it.
publication-narrow        alarm The publication does not send every kind of change.
ddl-trigger-missing       alarm The event trigger that source.ddl_trigger asks for is missing, disabled or of another
                                version.
# alarms about the server
slot-abandoned            alarm A slot that is not the pipeline's is inactive and keeps WAL.
slots-nearly-full         alarm Few replication slots or WAL senders are free.
transaction-open-long     alarm A transaction that has written has been open for long.
transaction-prepared-long alarm A prepared transaction has been open for long.
standby-feedback-off      alarm The source is a standby whose primary may vacuum what the slot needs.
# alarms about the lake
divergence-suspected      alarm Changes met other rows in the lake than at the source: the table may have diverged.
lake-stale                alarm The newest cut shows the source as it was longer ago than the limit.
merge-paused              alarm The merge DAG is paused while changes wait for it.
merge-failing             alarm The merge DAG fails while changes wait for it.
merge-late                alarm Landed changes wait for a merge, and no run of it comes.
table-paused              alarm A table is paused: readers see it as it was.
resync-failing            alarm Tables wait for a copy whose DAG fails or is paused.
copy-stalled              alarm A copy or a rebuild under way has not got on for long.
maintain-overdue          alarm Maintenance fails, is paused, or has not run for two schedules.
changelog-overdue         alarm Changelogs are not filled any more: the DAG fails, is paused or does not run.
verify-overdue            alarm Scheduled verifications fail, are paused, or have not run for two schedules.
# alarms about what the pipeline stands on
storage-nearly-full       alarm Little is free on the disk of the landing zone or of the lake.
slot-unwatched            alarm Slot health is paused or silent: no alarm opens.
alerts-unheard            alarm Critical alarms have no channel, although warnings have one.
clocks-differ             alarm The clock of the source or of an Airflow worker is not the ledger's, by more than half a
                                minute.
# events of a run or of a changelog
dag-failed                note  A DAG run failed after all its tries, was killed, or took too long.
changes-late              note  Changes belong to an interval of the changelogs that was filled before: fill it again.
"""
"""A row: the slug; the directive of the error, `call` for a wrong call (which fails), `alarm` for no error; the meaning."""

_ALARMS = """
no-usable-identity        critical -           with every update that the application cannot make
source-unreachable        critical slot_health unknown: the slot is not observed
source-auth               critical resume
source-disk-full          critical -           at once: without room the server stops
source-corrupt            critical -           unknown: more may be damaged
decoding-limit            critical -
slot-missing              critical recover     it is final
slot-lost                 critical recover     it is final
pipeline-halted           critical resume
landing-changed           critical resume
target-clash              critical resume
clock-skew                critical merge       as time passes: nothing is published
cuts-unreadable           critical resync      as time passes: no merge can publish
verify-differs            critical resync      with every reader who trusts it
verify-unreadable         critical verify      its rows are unproven
slot-retained             critical capture
slot-unread               critical capture
slot-unreserved           critical capture     minutes, until the next checkpoint
slot-orphaned             critical -
slot-stalled              critical capture
slot-synced               critical -           nothing is captured
slot-idle-timeout         critical -           one missed run can do it
catalog-xmin-old          critical -           days
decoding-spills           warn     -           it only costs time
capture-paused            critical capture
capture-failing           critical capture
capture-too-slow          critical capture     ever faster: a longer queue reads slower
publication-narrow        critical -           with every change that it leaves out
ddl-trigger-missing       warn     -           not at all: a change of columns may cost a copy
slot-abandoned            critical -
slots-nearly-full         warn     -           the next that needs one is refused
transaction-open-long     warn     -           slowly: WAL stays, every capture reads more
transaction-prepared-long warn     -           slowly: WAL stays, every capture reads more
standby-feedback-off      critical -           any vacuum can do it
divergence-suspected      critical verify      with every reader who trusts it
lake-stale                critical merge       as time passes: readers decide by old rows
merge-paused              critical merge       as time passes
merge-failing             critical merge       as time passes
merge-late                critical merge       as time passes
table-paused              warn     resume      as time passes: its rows get older
resync-failing            warn     resync      as time passes
copy-stalled              warn     resync      slowly: a copy's snapshot holds back vacuum on the source
maintain-overdue          warn     maintain    slowly: reads get slower, the lake grows
changelog-overdue         warn     changelog   until landing.retention: then an interval cannot be filled any more
verify-overdue            warn     verify      not by itself: what differs stays unseen
storage-nearly-full       critical maintain    as fast as the source writes, and faster during copies
slot-unwatched            critical slot_health unseen
alerts-unheard            warn     -           with the next alarm
clocks-differ             warn     -           not by itself: times of two clocks are compared
"""
"""A row: the slug; the alarm's highest level; its DAG; how fast things get worse, which is usually as fast as the source writes."""

_REMEDIES: dict[str, Remedy] = {
    "no-usable-identity": "person",
    **dict.fromkeys(("copy-failed", "schema-change", "publication-changed", "transaction-skipped"), "copy"),
    **dict.fromkeys(("source-changed", "publication-missing", "slot-missing", "slot-dropped", "slot-lost"), "copy"),
    **dict.fromkeys(("slot-ahead", "slot-unusable"), "copy"),
}
_WRONG_CALL, _NO_ERROR = "call", "alarm"


def _rows(table: str, columns: int) -> Iterator[list[str]]:
    """Yield the rows of a table; what is too long for its line goes on in the next one, after blanks."""
    for line in re.sub(r"\n +", " ", table).splitlines():
        if line and not line.startswith("#"):
            yield [*line.split(maxsplit=columns - 1), ""][:columns]


def _level(text: str) -> Level:
    return "critical" if text == "critical" else "warn"


ALARMS = {
    slug: Alarm(_level(level), None if dag == "-" else dag, worsens or "as fast as the source writes")
    for slug, level, dag, worsens in _rows(_ALARMS, 4)
}
CONDITIONS = {
    slug: Condition(
        meaning,
        None if met == _NO_ERROR else Directive.FAIL if met == _WRONG_CALL else Directive(met),
        ALARMS.get(slug),
        _REMEDIES.get(slug, "resume"),
        met == _WRONG_CALL,
    )
    for slug, met, meaning in _rows(_CONDITIONS, 3)
}
DIRECTIVES = {slug: each.directive for slug, each in CONDITIONS.items() if each.directive is not None}
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

"""A table of which the catalog alone cannot say what has become of it: what the next windows have to answer, and what is held back.

A new file may be that of a TRUNCATE or a rewrite that the stream or the event trigger tells of. Columns that were altered while the
table was rewritten may hold the same values, which the trigger alone can tell. Until then each look compares with what was before.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from penstock.ledger.table_records import LoadRecord, TableRecord
from penstock.lsn import Lsn
from penstock.shapes.accepted import Accepted, Asks, HeldBack, OpenQuestion, with_held_back
from penstock.shapes.ddl_log import Before, rewrite_logged
from penstock.shapes.ddl_message import DdlLog
from penstock.shapes.diff import added_columns, altered_columns, file_before
from penstock.shapes.known_shape import KnownShape
from penstock.shapes.plan import Plan, plan
from penstock.shapes.source_table import SourceColumn, SourceTable
from penstock.shapes.steps import Event, Evidence, Policy
from penstock.values.lake_types import innermost

Known = TableRecord | LoadRecord
_REWRITTEN = -1
"""The number of no file: each command that altered a column of a partitioned table is taken for one that rewrote partitions."""


@dataclass(frozen=True, slots=True)
class OpenTable:
    """Hold a table as a look has found it, with what the windows after it have to answer; without an answer it stops (`refusal`).

    The questions are of files, or of the values of columns, never of both.
    """

    known: Known
    now: SourceTable
    policy: Policy
    rows_sent: frozenset[int]
    questions: tuple[OpenQuestion, ...]

    @property
    def refusal(self) -> Plan:
        """Return the plan without an answer."""
        return plan_of(self.known, self.now, self.policy, Evidence(rows_sent=self.rows_sent))

    @property
    def through(self) -> Lsn:
        """Return the position up to which there has to be an answer."""
        return min(each.through for each in self.questions)

    @property
    def files(self) -> frozenset[int]:
        """Return the leaves with a file that is to be explained."""
        return self._subjects("file")

    @property
    def columns(self) -> frozenset[int]:
        """Return the columns that were altered and may hold the values of before, by attnum."""
        return self._subjects("values")

    @property
    def is_reshaped(self) -> bool:
        """Return whether columns were altered or added since the last look."""
        return any(self._altered_or_added())

    def plan(self, explained: Collection[int], empty_in: Mapping[int, str] | None = None) -> Plan:
        """Return the plan if these files are explained, values were kept, and these leaves are empty."""
        evidence = Evidence(frozenset(explained), self.rows_sent, empty_in or {}, values_kept=self.columns)
        return plan_of(self.known, self.now, self.policy, evidence)

    def best(self) -> Plan:
        """Return the plan if everything is answered well, but for partitions that are gone: these wait for the others."""
        found = self.plan(self.files)
        events = tuple(event for event in found.events if event.name != "drop-partition")
        return replace(found, events=events, gone=())

    def meanwhile(self) -> Plan:
        """Return what is followed at once: all but other types of columns that may hold other values."""
        best = self.best()
        return replace(best, events=tuple(event for event in best.events if event.retyped not in self.columns))

    def rest(self, decided: Plan) -> Plan:
        """Return what is followed by the answer, besides what was followed at once, at this look and at those before."""
        known = self.meanwhile().events
        held_back = [each.held_back for each in self.questions if each.held_back is not None]
        events = [Event("retype-column", text, xid) for each in held_back for text, xid in each.events]
        new = (event for event in decided.events if event not in known and event.retyped not in self.columns)
        return replace(decided, events=(*events, *new))

    @property
    def is_refused(self) -> bool:
        """Return whether the table waits for a fetch whatever the stream explains, which may spare it a copy."""
        return self.best().reason is not None

    def accepted(self, *, without: Collection[int] = (), checked: bool = False) -> Accepted:
        """Return the shape of now with what is held back, and the questions, `without` those of leaves that are explained.

        A file that nothing explains is held against the columns as they were before it, at each look until then. Of a rewritten
        table all files are held back with the altered columns. `checked`: a window has been held against these.
        """
        questions = tuple(
            replace(each, checked=each.checked or checked) for each in self.questions if each.subject not in without
        )
        now, before = self.now.shape, self.known.accepted.shape
        if self.columns:
            shape = with_held_back(now, before, now.leaves.keys() & before.leaves.keys(), self.columns)
        else:
            gone = before.leaves.keys() - now.leaves.keys() if now.kind == "p" else set()
            reshaped = {column.attnum for column in self._altered_or_added()}
            shape = with_held_back(now, before, {*(each.subject for each in questions), *gone}, reshaped)
        return Accepted(shape, questions)

    def with_explained(self, explained: Collection[int]) -> Accepted:
        """Return what was known with the files of now where they are explained: what is read later need not ask for these."""
        known, now = self.known.accepted, self.now.shape.leaves
        leaves = {**known.shape.leaves, **{oid: now[oid] for oid in explained}}
        return replace(known, shape=replace(known.shape, leaves=leaves))

    def before(self) -> Before:
        """Return what was right of the table when its columns had not been altered."""
        shape, open_ = self.known.accepted.shape, self.known.accepted.asked("values")
        types = _types(self.known)
        made = [column.type for column in self.known.columns] + [column.type for column in self.now.columns]
        domains = (type_ for type_ in made if type_.base is not None and innermost(type_).typmod == -1)
        return Before(
            file=_REWRITTEN if self.now.kind == "p" else file_before(shape, *self.now.leaves),
            types=types,
            versions=shape.versions,
            bases={type_.oid: innermost(type_).oid for type_ in domains},
            checked=any(each.checked for each in open_.values()),
        )

    def versions(self) -> dict[int, str]:
        """Return the versions of the altered columns' catalog rows now, by attnum."""
        return {each.subject: each.held_back.version for each in self.questions if each.held_back is not None}

    def rewrites(self, ddl: DdlLog | None, generation: str | None) -> dict[int, KnownShape | None]:
        """Return the rewrite that was logged of each partition that has another file than before, None where that is no story of one."""
        known, logged = self.known.accepted.shape.leaves, ddl.shapes if ddl else {}
        changed = (leaf for leaf in self.now.leaves if leaf.oid in known and known[leaf.oid].file != leaf.file)
        return {
            leaf.oid: rewrite_logged(known[leaf.oid].file, leaf.file, generation, logged.get(leaf.oid, ()))
            for leaf in changed
        }

    def _subjects(self, asks: Asks) -> frozenset[int]:
        return frozenset(each.subject for each in self.questions if each.asks == asks)

    def _altered_or_added(self) -> list[SourceColumn]:
        columns, before = self.known.columns, self.known.accepted.shape
        return [*altered_columns(columns, before, self.now), *added_columns(columns, self.now)]


def ask_for_files(
    known: Known,
    now: SourceTable,
    policy: Policy,
    rows_sent: frozenset[int],
    *,
    files: Iterable[int],
    here: Lsn,
) -> OpenTable | None:
    """Return a table of which the stream is asked up to `here` what explains these leaves' files; None where there is more against it."""
    asked = known.accepted.asked("file")
    questions = tuple(asked.get(oid) or OpenQuestion("file", oid, here) for oid in files)
    case = OpenTable(known, now, policy, rows_sent, questions)
    best = case.best()
    return case if questions and (best.reason is None or best.reads_part) else None


def ask_for_values(
    known: TableRecord, now: SourceTable, policy: Policy, rows_sent: frozenset[int], *, here: Lsn
) -> OpenTable | None:
    """Return a rewritten table that is followed if the event trigger tells up to `here` that values were kept; None where there is more.

    A table that is not published by its name may be unlogged. Partitions are rewritten one by one: none may have gone, and all
    are ordinary tables, as they were at the last look.
    """
    asked, types = known.accepted.asked("values"), _types(known)
    altered = altered_columns(known.columns, known.accepted.shape, now)
    found = {column.attnum: column.version for column in altered if not column.generated}
    if {attnum: each.held_back.version for attnum, each in asked.items() if each.held_back} == found:
        here = min(each.through for each in asked.values()) if asked else here
    questions = []
    for attnum, version in found.items():
        before = asked.get(attnum)
        held_back = HeldBack(types[attnum], version, before.held_back.events if before and before.held_back else ())
        checked = any(each.checked for each in asked.values())
        questions.append(OpenQuestion("values", attnum, here, checked, held_back))
    case = OpenTable(known, now, policy, rows_sent, tuple(questions))
    best = case.best()
    if not questions or best.reason is not None or not _is_all_logged(case):
        return None
    return replace(case, questions=tuple(_with_events(each, best) for each in questions))


def _with_events(question: OpenQuestion, best: Plan) -> OpenQuestion:
    """Hold back the changes of a column's type until it is known that its values were kept."""
    if question.held_back is None:
        return question
    new = ((event.text, event.xid) for event in best.events if event.retyped == question.subject)
    return replace(question, held_back=replace(question.held_back, events=(*question.held_back.events, *new)))


def _is_all_logged(case: OpenTable) -> bool:
    """Return whether the event trigger can tell all that may have become of a table's rows."""
    now, before = case.now, case.known.accepted.shape
    if now.persistence != "p" or not case.policy.follows:
        return False
    if now.kind == "r":
        return now.oid in before.leaves
    if any(column.generated for column in now.columns):
        return False  # each partition may compute one by an expression of its own
    known = (before.leaves.get(leaf.oid) for leaf in now.leaves)
    logged = all((leaf.kind, leaf.persistence) == ("r", "p") for leaf in now.leaves)
    there = before.leaves.keys() <= {leaf.oid for leaf in now.leaves}
    return logged and there and all(each is None or each.persistence == "p" for each in known)


def held_files(accepted: Accepted) -> frozenset[int]:
    """Return the leaves of which the file of an earlier look than the last one is known."""
    return frozenset(accepted.shape.leaves if accepted.asked("values") else accepted.asked("file"))


def plan_of(known: Known, now: SourceTable | None, policy: Policy, evidence: Evidence) -> Plan:
    """Return the plan for a table as it is now, from where the lake has it."""
    through = known.complete_through if isinstance(known, TableRecord) else None
    return plan(known, now, evidence, policy, through or Lsn(0))


def _types(known: Known) -> dict[int, tuple[int, int]]:
    """Return the types (oid and typmod) under which the columns' values were right, by attnum."""
    types = {column.attnum: (column.type.oid, column.type.typmod) for column in known.columns}
    open_ = known.accepted.asked("values")
    return types | {attnum: each.held_back.type for attnum, each in open_.items() if each.held_back}

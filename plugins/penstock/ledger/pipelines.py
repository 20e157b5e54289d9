"""A pipeline's life: new -> bootstrapping -> running, halted from anywhere, torn down at last.

Every new slot begins an era. Positions, windows and copies of one era mean nothing in the next.
"""

from datetime import datetime

from psycopg.types.json import Jsonb

from penstock.codec import plain
from penstock.errors import ConfigError, LedgerError
from penstock.ledger.records import ActivePipeline, GapRecord, PipelineRecord, Publishing
from penstock.ledger.session import Part, Statements, Transaction, unknown
from penstock.ledger.tables import give_up_loads
from penstock.lsn import Lsn


class Pipelines(Part):
    """Record what happens to pipelines."""

    def get(self, name: str) -> PipelineRecord:
        """Return one pipeline; raises LedgerError("not-bootstrapped") when it is not registered."""
        return find(self, name)

    def all(self) -> list[PipelineRecord]:
        """Return every pipeline, by name."""
        return self.records(PipelineRecord, "pipelines/pipelines", name=None)

    def register(self, name: str, *, database: str, slot: str, publication: str) -> PipelineRecord:
        """Make a pipeline known; one that was torn down begins a new era, any other with a slot stays as it is.

        Raises ConfigError("config-invalid") when the names are not those under which its slot was made.
        """
        sources = {"database": database, "slot": slot, "publication": publication}
        with self.transaction() as transaction:
            transaction.change("pipelines/register_pipeline", name=name, **sources)
            found = lock(transaction, name)
            if found.state == "torn_down":
                _begin_era(transaction, name)
                transaction.change("pipelines/register_pipeline", name=name, **sources)
                found = find(transaction, name)
        for what, value in sources.items():
            if getattr(found, what) != value:
                raise ConfigError(
                    "config-invalid",
                    f"expected pipeline {name} to keep its {what} {getattr(found, what)}, got {value} instead; "
                    "take the old name back, or tear the pipeline down first",
                )
        return found

    def intend_slot(
        self, name: str, *, system_identifier: int, timeline: int, database: str, publication_oid: int, made: bool
    ) -> PipelineRecord:
        """Note, before the slot is `made` or adopted, that it will be ours: a slot found after a crash is then known.

        Raises LedgerError("ledger-conflict") when the pipeline has a slot already.
        """
        facts = {
            "system_identifier": system_identifier,
            "timeline": timeline,
            "database": database,
            "publication_oid": publication_oid,
            "made": made,
        }
        return self._change_pipeline(name, "pipelines/intend_slot", "to be without a slot", **facts)

    def note_publishing(self, name: str, publishing: Publishing) -> None:
        """Note how the publication publishes when a slot is about to be made, or nothing was noted before."""
        with self.transaction(lock=name) as transaction:
            transaction.change("pipelines/note_publishing", name=name, publishing=Jsonb(plain(publishing)))

    def note_landing(self, name: str, mark: str, *, marked: bool) -> PipelineRecord:
        """Note the landing zone's mark before it is written, and again when the zone has it: from then on it stays.

        Raises LedgerError("ledger-conflict") when the zone of another run is marked.
        """
        need = "to have no landing zone yet"
        return self._change_pipeline(name, "pipelines/note_landing", need, mark=mark, marked=marked)

    def in_place(self, name: str, place: str) -> str | None:
        """Return another pipeline whose lake's tables lie in a place, None where it is free."""
        return next((other for (other,) in self.rows("pipelines/in_place", name=name, place=place)), None)

    def take_place(self, name: str, place: str) -> None:
        """Note where the lake's tables lie; raises ConfigError("config-invalid") where those of another pipeline do."""
        with self.transaction() as transaction:
            for (other,) in transaction.rows("pipelines/in_place", name=name, place=place):
                raise ConfigError("config-invalid", taken(name, place, other))
            transaction.change("pipelines/take_place", name=name, place=place)

    def note_unproved(self, name: str, lsn: Lsn | None) -> None:
        """Note from where on the source has another history than the one that was read; None once it is proved to be that one."""
        with self.transaction(lock=name) as transaction:
            transaction.change("pipelines/note_unproved", name=name, lsn=lsn)

    def record_slot(self, name: str, *, consistent_point: Lsn, source_time: datetime | None = None) -> PipelineRecord:
        """Note the slot that was intended; the pipeline stands at its consistent point from now on.

        That closes the gap after the era before, at this point and at this time of the source's clock.

        Raises LedgerError("ledger-conflict") when no slot was intended or another one was recorded.
        """
        with self.transaction() as transaction:
            known = lock(transaction, name)
            if known.consistent_point == consistent_point:
                return known
            if source_time is not None:
                note = {"name": name, "lsn": consistent_point, "at": source_time, "looked_at": source_time}
                transaction.change("changelogs/note_source_clock", **note, begins=True)
            slot = {"consistent_point": consistent_point, "source_time": source_time}
            return _change(transaction, known, "pipelines/record_slot", "to wait for its slot", **slot)

    def begin_era(self, name: str) -> PipelineRecord:
        """Leave a slot behind for good: the pipeline has no position, tables or copies until the next one is recorded.

        What was not captured in between is a gap; cuts, windows and events stay, with the number of their era.
        Raises LedgerError("ledger-conflict") unless the pipeline is halted.
        """
        with self.transaction() as transaction:
            known = lock(transaction, name)
            if known.state != "halted":
                raise _conflict(known, "to be halted before its slot is left")
            _begin_era(transaction, name)
            return find(transaction, name)

    def gaps(self, name: str) -> list[GapRecord]:
        """Return what lies between the pipeline's eras, newest first."""
        return gaps(self, name)

    def finish_bootstrap(self, name: str) -> PipelineRecord:
        """Note that the pipeline runs; raises LedgerError("ledger-conflict") when it has no slot or is halted."""
        return self._change_pipeline(name, "pipelines/finish_bootstrap", "to have a slot and not be halted")

    def halt(self, name: str, *, slug: str, reason: str) -> PipelineRecord:
        """Stop a pipeline until a person has decided, with an event that says why."""
        with self.transaction() as transaction:
            known = lock(transaction, name)
            transaction.note(name, slug, reason, level="error")
            return _change(transaction, known, "pipelines/halt", "not to be torn down", slug=slug, reason=reason)

    def resume(self, name: str) -> PipelineRecord:
        """Let a halted pipeline continue from where it was; raises LedgerError("ledger-conflict") if it isn't halted."""
        return self._change_pipeline(name, "pipelines/resume", "to be halted")

    def tear_down(self, name: str) -> PipelineRecord:
        """Note that slot and publication are gone; cuts and events stay."""
        return self._change_pipeline(name, "pipelines/tear_down", "to be known")

    def _change_pipeline(self, name: str, statement: str, need: str, **values: object) -> PipelineRecord:
        with self.transaction() as transaction:
            return _change(transaction, lock(transaction, name), statement, need, **values)


def taken(name: str, place: str, other: str) -> str:
    """Say that the tables of two pipelines would lie in one place."""
    where = place.rpartition(" ")[2]
    return (
        f"expected pipeline {name} to have a namespace of its own, got {where}, in which pipeline {other} has its tables and its "
        "table of cuts; set another lake.namespace, or tear that pipeline down first"
    )


def find(ledger: Statements, name: str) -> PipelineRecord:
    """Return a pipeline; raises LedgerError("not-bootstrapped") for one that is not registered."""
    for record in ledger.records(PipelineRecord, "pipelines/pipelines", name=name):
        return record
    raise unknown(name)


def lock(transaction: Transaction, name: str) -> PipelineRecord:
    """Return a pipeline and keep every other change of it waiting until this transaction ends."""
    transaction.lock(name)
    return find(transaction, name)


def gaps(ledger: Statements, name: str) -> list[GapRecord]:
    """Return what lies between the pipeline's eras, newest first."""
    return ledger.records(GapRecord, "pipelines/gaps", name=name)


def lock_active(transaction: Transaction, name: str, *, halted: bool = False) -> ActivePipeline:
    """Lock a pipeline that has a slot and is not halted; raises LedgerError("pipeline-halted", "not-bootstrapped").

    With `halted` one that is halted will do.
    """
    return lock(transaction, name).active(halted=halted)


def _change(
    transaction: Transaction, known: PipelineRecord, statement: str, need: str, **values: object
) -> PipelineRecord:
    if transaction.change(statement, name=known.name, **values) != 1:
        raise _conflict(known, need)
    return find(transaction, known.name)


def _begin_era(transaction: Transaction, name: str) -> None:
    give_up_loads(transaction, name, "the era of its slot has ended")
    transaction.change("pipelines/begin_era", name=name)
    transaction.change("pipelines/forget_tables", name=name)


def _conflict(known: PipelineRecord, need: str) -> LedgerError:
    return LedgerError(
        "ledger-conflict",
        f"expected pipeline {known.name} {need}, but it is {known.state} at {known.position}; "
        "another run changed it: start over",
    )

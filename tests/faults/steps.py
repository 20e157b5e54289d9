"""The steps at which a process is killed, paused or watched: what the tests call them, and which function of ours each one is.

A test names a step, a moment (`before`, `during`, `after`) and the how-manieth call. Whoever renames or moves a function changes
its line here; `tests/faults/test_steps.py` finds each of them. Of many cases only a few are run by `make test`; their twins,
the slow ones, by `make test-all`.
"""

import importlib
from collections.abc import Collection, Iterable
from enum import StrEnum
from typing import Any

import pytest


class Step(StrEnum):
    """A function of ours as `module:function`, by the name of what has happened when it has returned."""

    WINDOW_LOOK_NOTED = "penstock.ledger.tables:Tables.note_looked"
    WINDOW_PLANNED = "penstock.ledger.windows:Windows.plan"
    WINDOW_STAGED = "penstock.ledger.windows:Windows.stage"
    WINDOW_CONFIRMED = "penstock.ledger.windows:Windows.confirm"
    TABLES_SAVED = "penstock.ledger.tables:Tables.save"
    MEMBERS_JOINED = "penstock.ledger.tables:Membership.join"
    MEMBERS_LEFT = "penstock.ledger.tables:Membership.leave"
    ROWS_WRITTEN = "penstock.landing.writer:FileWriter.write"
    FILE_PERSISTED = "penstock.landing.atomic_file:FolderDraft.persist"
    FILE_SHOWN = "penstock.landing.atomic_file:FolderDraft.show"
    TEXT_WRITTEN = "penstock.landing.zone:LandingZone.write_text"
    FOLDER_DELETED = "penstock.landing.zone:LandingZone.delete_folder"
    COPIED_ROWS_WRITTEN = "penstock.landing.writer:CopyWriter.write"
    COPIED_FILE_CLOSED = "penstock.landing.writer:CopyWriter.close"
    RANGE_LANDED = "penstock_spark.copy:land"
    READ_STARTED = "penstock.ledger.loads:Loads.start_reads"
    COPY_FINISHED = "penstock.ledger.loads:Loads.finish_copy"
    READ_AHEAD_STARTED = "penstock.source.read_ahead:ReadAhead.start"
    READ_AHEAD_MESSAGES = "penstock.source.read_ahead:ReadAhead.messages"
    SLOT_CREATED = "penstock.source.slot:_create"
    SLOT_TEXT_READ = "penstock.source.slot:_text_of"
    SLOT_ADVANCED = "penstock.source.slot:advance"
    SLOT_DROPPED = "penstock.source.slot:drop"
    SLOT_INTENDED = "penstock.ledger.pipelines:Pipelines.intend_slot"
    SLOT_RECORDED = "penstock.ledger.pipelines:Pipelines.record_slot"
    SERVER_SIGHTED = "penstock.source.server_info:sight"
    PUBLICATION_CREATED = "penstock.source.publication:ensure"
    PUBLICATION_TABLE_ADDED = "penstock.source.publication:add"
    PUBLICATION_ALTERED = "penstock.source.publication:alter"
    BOOTSTRAP_FINISHED = "penstock.ledger.pipelines:Pipelines.finish_bootstrap"
    ERA_BEGUN = "penstock.ledger.pipelines:Pipelines.begin_era"
    PIPELINE_HALTED = "penstock.ledger.pipelines:Pipelines.halt"
    MERGE_BEGUN = "penstock.ledger.merges:Merges.begin"
    MERGE_PUBLISHED_BY_FLOW = "penstock.flow.merge.run:publish"
    MERGE_PUBLISHED = "penstock.flow.merge.publish:_publish"
    MERGE_TABLES_ADVANCED = "penstock.ledger.merges:_advance"
    MERGE_TABLES_RENAMED = "penstock.ledger.merges:_rename"
    CUT_RECORDED = "penstock.ledger.merges:_record"
    POINTERS_MOVED_BY_MERGE = "penstock.ledger.merges:move_pointers"
    REBUILD_STARTED = "penstock.ledger.loads:Loads.start"
    REBUILD_RUN_NOTED = "penstock.ledger.loads:Loads.run"
    REBUILD_ADVANCED = "penstock.ledger.loads:Loads.advance"
    POINTERS_MOVED_BY_REBUILD = "penstock.ledger.loads:move_pointers"
    FETCH_LANDED = "penstock.ledger.loads:Loads.land"
    DATA_FILES_TAKEN_OVER = "penstock_spark.data_files:_take_over"
    ROWS_REPLACED = "penstock_spark.staging:Staging.replace_all"
    TABLE_STAGED = "penstock_spark.staging:Staging.stage"
    INTERVAL_LOCKED = "penstock.ledger.advisory_lock:AdvisoryLocks.hold"
    INTERVAL_WORK_FOUND = "penstock.ledger.changelogs:Changelogs.interval_work"
    INTERVAL_FILLED = "penstock.ledger.changelogs:Changelogs.fill"
    CHANGELOGS_LOCKED = "penstock.ledger.session:Transaction.lock"
    POINTERS_MOVED_BY_CHANGELOG = "penstock.ledger.changelogs:move_pointers"
    MAINTENANCE_BEGUN = "penstock.ledger.maintenance:Maintenance.begin"
    MAINTENANCE_ENDED = "penstock.ledger.maintenance:Maintenance.end"
    HISTORY_TRIMMED = "penstock.ledger.maintenance:Maintenance.trim_history"
    LANDED_FORGOTTEN = "penstock.ledger.maintenance:Maintenance.forget_landed"
    OLD_TABLES_FORGOTTEN = "penstock.ledger.maintenance:Maintenance.forget_old_tables"
    COMPACTED_MOVED = "penstock.ledger.maintenance:Maintenance.move_compacted"
    COMPACTED = "penstock_spark.table_maintenance:TableMaintenance._compact"
    SNAPSHOTS_EXPIRED = "penstock_spark.table_maintenance:TableMaintenance._expire"
    MANIFESTS_GATHERED = "penstock_spark.table_maintenance:TableMaintenance._gather_manifests"
    ORPHANS_DELETED = "penstock_spark.table_maintenance:TableMaintenance._delete_orphans"
    OLD_TABLES_DROPPED = "penstock_spark.maintain:drop_old"
    LAKE_TABLE_DROPPED = "penstock_spark.maintain:_purge"
    RESULT_WRITTEN = "penstock_spark.application:write_text"
    MARK_ADDED = "penstock.ledger.merges:Barriers.add"
    VERIFICATION_BEGUN = "penstock.ledger.verifications:Verifications.begin"
    VERIFIED_ROWS_READ = "penstock.flow.verify.compare:fingerprint"
    MARK_CAPTURED = "penstock.flow.verify.barrier:capture"

    @property
    def spoken(self) -> str:
        """Return the name in small words, for the name of a test and for a log."""
        return self.name.lower().replace("_", " ")


Kill = tuple[Step, str, int]


def owner(step: str) -> tuple[Any, str]:
    """Return the module or class that has the function of a step, and the function's name there."""
    module, _, path = step.partition(":")
    found: Any = importlib.import_module(module)
    *parents, name = path.split(".")
    for parent in parents:
        found = getattr(found, parent)
    return found, name


def called(case: tuple[Any, ...]) -> str:
    """Name the test of a step, or of a verb and a step."""
    *verb, step, when, occurrence = case
    return " ".join([*verb, when, step.spoken, str(occurrence)])


def slow(cases: Iterable[tuple[Any, ...]], *, but: Collection[tuple[Any, ...]] = ()) -> list[Any]:
    """Mark the cases as slow, but those that are not."""
    return [case if case in but else pytest.param(case, marks=pytest.mark.slow) for case in cases]

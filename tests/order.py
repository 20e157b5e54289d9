"""The order of the tests' files: the longest first, so that none of them begins when the other processes are done."""

from pathlib import Path

import pytest

HERE = Path(__file__).parent
# Those of `make test` that take longest, as measured on two cores; all others take a few seconds.
LONGEST = [
    "dags/test_runs.py",
    "faults/test_merge_killed.py",
    "attack/test_silent_ddl.py",
    "scenarios/test_changelog.py",
    "scenarios/test_linger.py",
    "faults/test_copy_killed.py",
    "attack/test_publication_changes.py",
    "attack/test_copies_under_ddl.py",
    "spark/test_scenarios.py",
    "scenarios/test_maintenance.py",
    "spark/test_data_files.py",
    "flow/health/test_slots.py",
    "scenarios/test_membership.py",
    "attack/test_names_and_locations.py",
    "attack/test_skip_transaction.py",
    "spark/test_publishing.py",
    "scenarios/test_resume.py",
    "attack/test_one_table_fails.py",
    "scenarios/test_verify.py",
    "spark/test_random_histories.py",
    "stack/test_stack.py",
    "spark/test_columns.py",
    "attack/test_slot_between_look_and_peek.py",
    "attack/test_secrets_in_logs.py",
    "scenarios/test_recovery.py",
    "attack/test_tables_that_changed.py",
    "stack/servers/test_postgres_server.py",
    "attack/test_renamed_tables.py",
    "scenarios/test_ddl_trigger.py",
    "scenarios/test_resync.py",
    "scenarios/test_slot_ownership.py",
    "attack/test_conflicts.py",
    "demo/test_workload.py",
    "attack/test_idle_pointers.py",
    "scenarios/test_runbook_steps.py",
    "spark/test_policies.py",
    "faults/test_changelog_killed.py",
    "scenarios/test_downstream.py",
    "scenarios/test_new_tables.py",
    "attack/test_source_taken_back.py",
    "attack/test_verify_continues.py",
    "scenarios/test_replay.py",
    "landing/test_writer.py",
    "attack/test_pipeline_files.py",
    "faults/test_recovery_killed.py",
    "faults/test_rebuild_killed.py",
    "scenarios/test_recovery_by_command.py",
    "attack/test_held_tables.py",
    "attack/test_reserved_columns.py",
    "compare/test_compare.py",
    "dags/test_notices.py",
    "attack/test_empty_partitioned_tables.py",
    "faults/test_capture_killed.py",
    "source/test_catalog.py",
    "page/test_page.py",
    "flow/health/test_paging.py",
    "wire/test_real_servers.py",
    "ledger/test_retention.py",
    "scenarios/test_main_job.py",
    "stack/test_distribution_python.py",
    "wire/test_columnar_equals_scalar.py",
    "torture/test_grammar.py",
    "stack/test_machine_code.py",
    "demo/test_stream.py",
]


def longest_first(items: list[pytest.Item]) -> None:
    """Sort the files, and leave the order inside each of them as it is."""
    places = {HERE / name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path, len(places)))

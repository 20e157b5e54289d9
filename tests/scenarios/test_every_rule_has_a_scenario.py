"""Which scenario shows each rule of a schema change: on real servers the lake equals the source, at the cost that the rule promises."""

import re
from pathlib import Path

from tests.scenarios.test_stories import GROUPS

ROOT = Path(__file__).parents[2]
STORIES = "scenarios/test_stories.py::test_the_stories_of_a_window_end_with_an_equal_lake_at_their_cost"
ALONE = "scenarios/test_schema_changes.py::test_a_change_of_columns_alone_writes_no_data_file_and_is_an_event"
CHANGES, LARGE, TREES = f"{STORIES}[columns]", f"{STORIES}[large values]", f"{STORIES}[partitions and names]"
TYPES, EXTENSIONS = f"{STORIES}[types of its own]", f"{STORIES}[extension types]"
COPIED, FETCHED = f"{STORIES}[what only a copy follows]", f"{STORIES}[columns that are read again]"
SCENARIOS = {
    "column added, without default": (
        "scenarios/test_schema_changes.py::test_an_added_column_appears_with_its_default_before_any_row_changes",
        LARGE,
    ),
    "column renamed": (
        CHANGES,
        ALONE,
        LARGE,
        "attack/test_hostile_names.py::test_columns_take_any_name_and_give_it_back_and_pass_it_on",
    ),
    "column dropped": (
        CHANGES,
        ALONE,
        "scenarios/test_schema_changes.py::test_a_dropped_column_stays_with_what_it_held_or_goes",
    ),
    "column dropped, another added": (CHANGES, ALONE, LARGE),
    "`varchar(n)`": (CHANGES, ALONE, TYPES, EXTENSIONS),
    "`numeric(p,s)`": (CHANGES, ALONE),
    "`smallint` or `int`": (
        f"{STORIES}[rewrites for wider types]",
        LARGE,
    ),
    "column added with a volatile default": (
        FETCHED,
        LARGE,
        EXTENSIONS,
    ),
    "any other change of a column's type": (
        FETCHED,
        LARGE,
    ),
    "enum label renamed": ("scenarios/test_column_fetch.py::test_a_renamed_label_costs_the_rows_that_hold_it", TYPES),
    "replica identity full": (CHANGES, ALONE),
    "primary key or replica identity": (
        f"{STORIES}[keys]",
        "attack/test_key_changes.py::test_a_change_of_the_key_alone_is_an_event_and_writes_nothing",
        LARGE,
    ),
    "partition created": (
        TREES,
        "scenarios/test_attached_partitions.py::test_whatever_became_of_partitions_their_rows_alone_are_read",
    ),
    "partition attached with rows": (
        TREES,
        "scenarios/test_attached_partitions.py::test_only_the_rows_of_an_attached_partition_are_read",
    ),
    "partition detached and attached again": (
        "scenarios/test_attached_partitions.py::test_whatever_became_of_partitions_their_rows_alone_are_read",
    ),
    "partition with a new file": (
        "scenarios/test_attached_partitions.py::test_whatever_became_of_partitions_their_rows_alone_are_read",
    ),
    "attribute of a composite type": (TYPES,),
    "enum label added": (TYPES,),
    "table added to the publication": (
        "scenarios/test_new_tables.py::test_a_table_that_matches_and_one_of_a_new_pattern_join_under_load",
    ),
    "table dropped, or taken": (
        "scenarios/test_new_tables.py::test_a_table_that_left_is_complete_through_the_reported_position_and_is_copied_again_when_it_comes_back",
    ),
    "table dropped and created": (COPIED,),
    "table gone from the publication": (COPIED,),
    "the publication's options": (
        "attack/test_publication_changes.py::test_the_lake_equals_the_source_after_the_copies_that_follow",
    ),
    "`vacuum full`": (COPIED, CHANGES),
    "partition dropped, detached": (
        TREES,
        "scenarios/test_gone_partitions.py::test_the_rows_of_a_partition_that_is_gone_go_from_the_lake_and_nothing_is_copied",
        "scenarios/test_gone_partitions.py::test_rows_of_a_truncated_partition_go_and_what_it_takes_later_stays",
        "scenarios/test_kept_partitions.py::test_rows_of_partitions_that_are_gone_stay_in_the_lake_and_verify_compares_the_others",
    ),
    "table renamed or moved": (
        "scenarios/test_renamed_tables.py::test_renamed_tables_keep_their_rows_under_new_names_in_one_cut",
        TREES,
        "attack/test_hostile_names.py::test_tables_schemas_types_and_labels_take_any_name",
    ),
    "anything else": (COPIED, TYPES),
}
"""By how the rule's row begins in docs/schema-changes.md; a row belongs to the longest beginning."""


def test_every_rule_of_the_documentation_has_a_scenario_and_every_scenario_is_there() -> None:
    text = (ROOT / "docs" / "schema-changes.md").read_text()
    tables = re.findall(r"^\| change at the source \|.*\n\|[-|]+\n((?:\|.*\n)+)", text, re.MULTILINE)
    rows = [line.removeprefix("| ") for table in tables for line in table.splitlines()]

    assert len(tables) == 2
    found = {row: max((key for key in SCENARIOS if row.startswith(key)), key=len, default=None) for row in rows}
    assert [row for row, key in found.items() if key is None] == [], "write its scenario, and name it here"
    assert SCENARIOS.keys() - set(found.values()) == set()
    named = {scenario for scenarios in SCENARIOS.values() for scenario in scenarios}
    assert [each for each in sorted(named) if not _is_there(*each.split("::"))] == []


def _is_there(file: str, test: str) -> bool:
    name, _, group = test.rstrip("]").partition("[")
    return bool(re.search(rf"^def {name}\(", (ROOT / "tests" / file).read_text(), re.MULTILINE)) and group in {
        "",
        *GROUPS,
    }

"""Names and texts in Spark SQL; and a table's folder is its own, whatever its name and the names of the others."""

import re
from itertools import permutations

import pytest

from penstock.lake.ddl import identifier, literal, path
from penstock.lake.properties import folder_of, new_location, owns_folder

NAMES = (
    "nest",
    "nest/data",
    "nest/metadata",
    "..",
    "../nest",
    "ne",
    "nest-1",
    "NEST",
    "\u00fcml\u00e4ut",
    "a\nb\t",
    "?#[*%",
    "x" * 63,
    "",
)


def test_no_new_table_lies_inside_of_another_or_around_it() -> None:
    targets = [("shop", schema, name) for schema in NAMES for name in NAMES]
    made = [new_location("file:///lake", target, f"{at:032x}") for at, target in enumerate(targets)]

    assert len({place for place in made if place}) == len(targets)
    assert all(re.fullmatch(r"file:///lake/shop/\w*/\w*-[0-9a-f]{32}", place or "", re.ASCII) for place in made)
    assert all(one and other and owns_folder(one, [other]) for one, other in permutations(made, 2))


def test_a_schema_that_is_named_as_a_tables_folder_is_not_inside_of_it() -> None:
    table = new_location("/lake", ("shop", "public", "t"), "0" * 32)
    inside = new_location("/lake", ("shop", "public", f"t-{'0' * 32}", "u"), "1" * 32)

    assert table is not None
    assert inside is not None
    assert owns_folder(table, [inside])


def test_a_catalog_without_a_place_of_its_own_chooses_the_folders() -> None:
    assert new_location("analytics", ("shop", "t"), "0") is None
    assert new_location("", ("shop", "t"), "0") is None


@pytest.mark.parametrize(
    ("other", "alone"),
    [
        ("file:///lake/shop/t2", True),
        ("file:///lake/shop/t", False),
        ("file:///lake/shop/t/inner", False),  # a namespace that is named as the table
        ("file:///lake/shop/t/data", False),
        ("file:///lake/shop/t/metadata/deep", False),
        ("file:///lake/shop", False),  # around it
        ("file:///lake/sho", True),
    ],
)
def test_a_folder_is_a_tables_own_when_no_other_table_is_inside_of_it_or_around_it(other: str, alone: bool) -> None:
    assert owns_folder("file:///lake/shop/t/", [other]) is alone
    assert owns_folder("file:///lake/shop/t", [f"{other}/"]) is alone


def test_a_tables_folder_is_known_by_its_metadata_file() -> None:
    assert folder_of("file:///lake/t/metadata/00001-a.metadata.json") == "file:///lake/t"
    assert folder_of("file:///lake/metadata/metadata/1.json") == "file:///lake/metadata"
    assert folder_of("file:///elsewhere/1.json") == "file:///elsewhere"


@pytest.mark.parametrize(
    ("name", "quoted"),
    [
        ("a", "`a`"),
        ("Select", "`Select`"),
        ("a`b", "`a``b`"),
        ("``", "``````"),
        ("a.b", "`a.b`"),
        (" ", "` `"),
        ("'", "`'`"),
    ],
)
def test_a_name_is_quoted_whatever_is_in_it(name: str, quoted: str) -> None:
    assert identifier(name) == quoted


def test_each_part_of_a_path_is_quoted_by_itself() -> None:
    assert path("lake", "a.b", "t`") == "`lake`.`a.b`.`t```"


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("a", "'a'"),
        ("", "''"),
        ("it's", r"'it\'s'"),
        ("\\", r"'\\'"),
        ("\\'", r"'\\\''"),
        ('"', "'\"'"),
        ("%_", "'%_'"),
    ],
)
def test_a_text_is_quoted_whatever_is_in_it(text: str, quoted: str) -> None:
    assert literal(text) == quoted

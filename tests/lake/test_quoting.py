"""Names and texts in Spark SQL."""

import pytest

from penstock.lake.quoting import identifier, literal, path


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

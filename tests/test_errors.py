"""An error names its condition, says what it does, travels between processes, and has its page."""

import pickle
from pathlib import Path

import pytest

from penstock import errors
from penstock.conditions import Directive, with_runbook
from penstock.errors import (
    ConfigError,
    LakeError,
    LedgerError,
    NoLedgerError,
    PenstockError,
    ProtocolError,
    SourceError,
)

ROOT = Path(__file__).parents[1]
TREE = [PenstockError, ConfigError, SourceError, ProtocolError, LedgerError, NoLedgerError, LakeError]


@pytest.mark.parametrize("tree", TREE)
@pytest.mark.parametrize("slug", ["slot-lost", "config-invalid"])
def test_an_error_survives_the_way_to_another_process(tree: type[PenstockError], slug: str) -> None:
    error = tree(slug, "expected this, got that; do so")
    copied = pickle.loads(pickle.dumps(error))

    assert type(copied) is tree
    assert (copied.slug, copied.message, str(copied), copied.directive) == (
        slug,
        error.message,
        str(error),
        error.directive,
    )


def test_an_error_says_its_name_first_and_knows_its_page() -> None:
    error = SourceError("slot-lost", "expected the slot, it is gone; copy again")

    assert str(error) == "[slot-lost] expected the slot, it is gone; copy again"
    assert error.directive is Directive.HALT
    assert (ROOT / error.runbook).is_file()


@pytest.mark.parametrize("slug", ["no-such-condition", "slot-retained"])
def test_a_condition_that_is_unknown_or_an_alarm_only_cannot_be_raised(slug: str) -> None:
    with pytest.raises(KeyError):
        LakeError(slug, "x")


def test_every_branch_of_the_tree_is_caught_by_its_root() -> None:
    named = {value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, Exception)}

    assert named == set(TREE)


@pytest.mark.parametrize(
    "message", ["[slot-lost] expected a slot, it is gone; recover", "[slot-lost] expected a slot, it is gone; recover."]
)
def test_a_message_ends_as_a_sentence_before_the_page_that_it_names(message: str) -> None:
    assert with_runbook(message, "slot-lost") == (
        "[slot-lost] expected a slot, it is gone; recover. See docs/runbooks/slot-lost.md."
    )

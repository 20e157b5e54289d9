"""Every kind of error has a name, says what it does, travels between processes, and has its page."""

import pickle
import re
from pathlib import Path

import pytest

from penstock import errors
from penstock.errors import (
    KINDS,
    ConfigError,
    Directive,
    LakeError,
    LedgerError,
    PenstockError,
    ProtocolError,
    SourceError,
)

ROOT = Path(__file__).parents[1]
TREE = [PenstockError, ConfigError, SourceError, ProtocolError, LedgerError, LakeError]


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


def test_an_unknown_kind_cannot_be_raised() -> None:
    with pytest.raises(KeyError):
        LakeError("no-such-kind", "x")


def test_every_branch_of_the_tree_is_caught_by_its_root() -> None:
    named = {value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, Exception)}

    assert named == set(TREE)


@pytest.mark.parametrize("slug", KINDS)
def test_a_kind_is_named_in_kebab_case_and_explained_in_one_sentence(slug: str) -> None:
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", slug)
    assert re.fullmatch(r"[A-Z].+[^.]\.", KINDS[slug].meaning)


def test_every_kind_that_the_code_raises_exists() -> None:
    sources = [*ROOT.glob("plugins/penstock/**/*.py"), *ROOT.glob("spark_apps/**/*.py")]
    code = "\n".join(path.read_text() for path in sources if path.name != "errors.py")
    raised = set(re.findall(r"(?:Config|Source|Protocol|Ledger|Lake)Error\(\s*\"([a-z-]+)\"", code))

    assert len(raised) > 20
    assert raised <= set(KINDS)

"""The code and the catalogue of conditions agree: nothing is raised, recorded or watched that it does not explain."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.conditions import CONDITIONS, DIRECTIVES, PAGED, runbook, runbook_text
from penstock.source import server_errors
from penstock.source.preflight.findings import TEXTS

ROOT = Path(__file__).parents[1]
ERRORS = {"ConfigError", "SourceError", "ProtocolError", "LedgerError", "LakeError"}


def trees() -> list[ast.Module]:
    """Return the code of the library, of the Spark applications and of the DAGs, the catalogue itself excepted."""
    folders = ("plugins/penstock", "spark_apps", "dags")
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*.py") if path.name != "conditions.py"]
    return [ast.parse(path.read_text(encoding="utf-8")) for path in paths]


def texts(node: ast.AST) -> Iterator[str]:
    return (each.value for each in ast.walk(node) if isinstance(each, ast.Constant) and isinstance(each.value, str))


def used() -> tuple[set[str], set[str]]:
    """Return the slugs that the code raises, and those that it notes, in events, pauses and findings."""
    raised, noted = set[str](), set[str]()
    for call in (node for tree in trees() for node in ast.walk(tree) if isinstance(node, ast.Call)):
        name = call.func.id if isinstance(call.func, ast.Name) else ""
        if name in ERRORS and call.args:
            raised |= set(texts(call.args[0]))
        if (name == "Trouble" or ast.unparse(call.func) == "Trouble.usual") and call.args:
            noted |= set(texts(call.args[0]))
        if name == "Finding" and call.args:
            noted |= {text for text in texts(call.args[0]) if text not in ("ok", "warn", "error")}
        noted |= {text for keyword in call.keywords if keyword.arg == "slug" for text in texts(keyword.value)}
    found = {slug for _, slug, *_ in TEXTS.values() if slug and slug != "{kind}"}
    return raised | {rule.slug for rule in server_errors.RULES}, noted | found


@pytest.mark.parametrize("slug", CONDITIONS)
def test_a_condition_is_named_in_kebab_case_explained_in_one_sentence_and_met_in_some_way(slug: str) -> None:
    condition = CONDITIONS[slug]

    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", slug)
    assert re.fullmatch(r"[A-Z].+[^.]\.", condition.meaning)
    assert condition.directive or condition.alarm
    assert (ROOT / runbook(slug).partition("#")[0]).is_file()
    assert runbook_text(ROOT, slug).startswith(f"# {slug}\n\n")


def test_no_two_conditions_mean_the_same() -> None:
    assert len({condition.meaning for condition in CONDITIONS.values()}) == len(CONDITIONS)


def test_every_slug_that_the_code_raises_or_notes_is_in_the_catalogue() -> None:
    raised, noted = used()

    assert len(raised) > 50
    assert len(noted) > 20
    assert sorted(raised - set(DIRECTIVES)) == []
    assert sorted(noted - set(CONDITIONS)) == []


def test_every_condition_of_the_catalogue_is_met_somewhere_in_the_code() -> None:
    spelled = {text for tree in trees() for text in texts(tree)} | set().union(*used())

    assert sorted(set(CONDITIONS) - spelled) == []


def test_an_error_that_pages_has_an_alarm_to_open() -> None:
    assert [slug for slug in PAGED if CONDITIONS[slug].alarm is None] == []

"""The glossary of docs/concepts.md and the code use the same words.

A word that names a table of the ledger, a wing of `flow` or a module is explained there, and nothing is explained that is not used.
"""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
CONCEPTS = ROOT / "docs" / "concepts.md"
LIBRARY = ROOT / "plugins" / "penstock"

# Tables of the ledger whose name is not the word: those named otherwise in docs, and those that need no entry of their own.
TABLES_NAMED_OTHERWISE = {
    "mark": "barrier",
    "old_table": "replaced table",
    "skipped": "skipped transaction",
    "changelog_fill": "fill",
    "verified": "verified through",
    "slot_sample": "sample",
}
PLAIN_TABLES = {"table"}

# Words of our own that names of modules are made of. One that no module uses any more is to be taken out.
TERMS_OF_MODULES = {
    "attempt",
    "barrier",
    "capture",
    "changelog",
    "copy",
    "health",
    "ledger",
    "manifest",
    "merge",
    "pipeline",
    "pointers",
    "policy",
    "position",
    "preflight",
    "proof",
    "publish",
    "recover",
    "replay",
    "resume",
    "resync",
    "schema",
    "shapes",
    "teardown",
    "windows",
}
WINGS_NAMED_OTHERWISE = {"verify": "verification", "maintain": "maintenance"}


def glossary() -> dict[str, str]:
    """Return the words of the glossary with their meanings."""
    section = CONCEPTS.read_text(encoding="utf-8").partition("## Words")[2].partition("\n## ")[0]
    return dict(re.findall(r"^\| \*\*(.+?)\*\* \| (.+) \|$", section, re.MULTILINE))


def singular(word: str) -> str:
    return word if word.endswith("ss") else word.removesuffix("s")


def test_every_word_of_the_glossary_has_one_plain_sentence_and_stands_in_order() -> None:
    words = glossary()

    assert len(words) > 40
    assert list(words) == sorted(words)
    assert [word for word, meaning in words.items() if not meaning.endswith(".")] == []


def test_every_word_of_the_glossary_is_used_outside_of_it() -> None:
    documents = [path for path in (ROOT / "docs").rglob("*.md") if path != CONCEPTS]
    code = [*LIBRARY.rglob("*.py"), *(ROOT / "dags").glob("*.py"), *(ROOT / "spark_apps").rglob("*.py")]
    documents += [*LIBRARY.rglob("*.md"), *(ROOT / "include" / "sql").rglob("*.sql")]
    used = "\n".join(path.read_text(encoding="utf-8") for path in (*documents, *code)).lower().replace("_", " ")

    assert [word for word in glossary() if not re.search(rf"\b{re.escape(word)}(s|es)?\b", used)] == []


def test_every_table_of_the_ledger_is_in_the_glossary() -> None:
    migrations = (ROOT / "include" / "sql" / "ledger" / "migrations").rglob("*.sql")
    statements = "\n".join(path.read_text(encoding="utf-8") for path in migrations)
    tables = set(re.findall(r"create table penstock\.\"?(\w+)", statements))
    words = {TABLES_NAMED_OTHERWISE.get(table, table.replace("_", " ")) for table in tables - PLAIN_TABLES}

    assert len(tables) > 15
    assert set(TABLES_NAMED_OTHERWISE) <= tables
    assert sorted(words - set(glossary())) == []


def test_every_wing_of_flow_is_in_the_glossary() -> None:
    wings = {path.parent.name for path in (LIBRARY / "flow").glob("*/__init__.py")}

    assert wings
    assert sorted({WINGS_NAMED_OTHERWISE.get(wing, wing) for wing in wings} - set(glossary())) == []


def test_every_term_in_the_name_of_a_module_is_in_the_glossary() -> None:
    parts = {
        part for path in LIBRARY.rglob("*.py") for name in (path.stem, path.parent.name) for part in name.split("_")
    }

    assert sorted(term for term in TERMS_OF_MODULES if not {term, singular(term), f"{term}s"} & parts) == []
    assert sorted(term for term in TERMS_OF_MODULES if not {term, singular(term)} & set(glossary())) == []

"""Runbooks and documents as the page shows them: Markdown in, HTML out, links led to where they are in the page."""

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

from penstock.conditions import CONDITIONS, WRONG_CALLS, WRONG_CALLS_PAGE, runbook_text

RUNBOOKS = "runbooks"
DOCS = "docs"
"""Where the page has the runbooks, and the other documents."""
INDEX = "README"


@dataclass(frozen=True)
class Runbook:
    """Hold a runbook as a list shows it: its name, what its condition means, and its whole text to be searched."""

    name: str
    meaning: str
    text: str


@dataclass(frozen=True)
class Documents:
    """Read `docs/*.md` and `docs/runbooks/*.md`; `home` is the project folder."""

    home: Path

    def names(self, kind: str) -> frozenset[str]:
        """Name every document of a kind, `RUNBOOKS` or `DOCS`; a section of the page of wrong calls is a runbook, too."""
        names = frozenset(path.stem for path in self._folder(kind).glob("*.md"))
        return names | WRONG_CALLS if kind == RUNBOOKS and WRONG_CALLS_PAGE in names else names

    def html(self, kind: str, name: str) -> str | None:
        """Return a document as HTML; None when there is none of this name."""
        if name not in self.names(kind):
            return None
        path = self._folder(kind) / f"{name}.md"
        is_condition = kind == RUNBOOKS and name in CONDITIONS
        return _rendered(path, runbook_text(self.home, name) if is_condition else path.read_text(encoding="utf-8"))

    def runbooks(self) -> list[Runbook]:
        """Return the runbook of every condition, by name."""
        slugs = sorted(self.names(RUNBOOKS) & CONDITIONS.keys())
        return [Runbook(slug, CONDITIONS[slug].meaning, runbook_text(self.home, slug)) for slug in slugs]

    def _folder(self, kind: str) -> Path:
        return self.home / "docs" / RUNBOOKS if kind == RUNBOOKS else self.home / "docs"


@lru_cache(maxsize=256)
def _rendered(path: Path, text: str) -> str:
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = markdown.parse(text)
    for place, token in enumerate(tokens):
        if token.type == "heading_open":
            token.attrs["id"] = _anchor(tokens[place + 1].content)
        for child in token.children or []:
            if child.type == "link_open":
                _lead(child, path)
    return str(markdown.renderer.render(tokens, markdown.options, {}))


def _anchor(title: str) -> str:
    """Name a heading as links to it do."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def _lead(link: Token, path: Path) -> None:
    """Lead a link to the document in the page; what the page does not have stays as words with its place named."""
    target, _, anchor = str(link.attrs.get("href", "")).partition("#")
    if not target:
        return
    there = (path.parent / target).resolve()
    kinds = {path.parent.resolve(): "", **_neighbours(path)}
    if there.suffix == ".md" and there.exists() and there.parent in kinds:
        link.attrs["href"] = kinds[there.parent] + there.stem + (f"#{anchor}" if anchor else "")
    else:
        link.attrs = {"title": target, "class": "elsewhere"}


def _neighbours(path: Path) -> dict[Path, str]:
    here = path.parent.resolve()
    if here.name == RUNBOOKS:
        return {here.parent: f"../{DOCS}/"}
    return {here / RUNBOOKS: f"../{RUNBOOKS}/"}

"""The runbooks as the page shows them: Markdown in, HTML out, links led to where they are in the page."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

_OURS = re.compile(r"(?:\./)?([a-z0-9-]+)\.md(#.*)?$")
_HERE = re.compile(r"#")


@dataclass(frozen=True)
class Runbooks:
    """Read `docs/runbooks`; `home` is the project folder."""

    home: Path

    @property
    def folder(self) -> Path:
        """Return the folder of the runbooks."""
        return self.home / "docs" / "runbooks"

    def slugs(self) -> frozenset[str]:
        """Name every runbook."""
        return frozenset(path.stem for path in self.folder.glob("*.md") if path.name != "README.md")

    def html(self, slug: str) -> str | None:
        """Return one runbook as HTML without its title; None when there is none of this name."""
        if slug not in self.slugs():
            return None
        path = self.folder / f"{slug}.md"
        return _rendered(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=256)
def _rendered(path: Path, _changed: int) -> str:
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = markdown.parse(re.sub(r"\A# .*\n", "", path.read_text(encoding="utf-8")))
    for token in tokens:
        for child in token.children or []:
            _lead(child)
    return str(markdown.renderer.render(tokens, markdown.options, {}))


def _lead(token: Token) -> None:
    """Lead a link to another runbook there; one that leaves the runbooks stays as words, with its file named."""
    if token.type != "link_open":
        return
    target = str(token.attrs.get("href", ""))
    if found := _OURS.match(target):
        token.attrs["href"] = found[1] + (found[2] or "")
    elif not _HERE.match(target):
        token.attrs = {"title": target.replace("../", "docs/"), "class": "elsewhere"}

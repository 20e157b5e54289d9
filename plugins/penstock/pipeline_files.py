"""The folder of pipeline files: which file defines which pipeline, and what is wrong with the others.

One file never takes another's pipeline away: a file that cannot be used is a problem with a name, next to the
pipelines that can.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from penstock.config import Pipeline, load_pipeline
from penstock.document import Document, invalid
from penstock.errors import ConfigError
from penstock.store_options import nearest

SUFFIX = ".yaml"
Load = Callable[[Path, Mapping[str, str]], Pipeline]


@dataclass(frozen=True)
class Folder:
    """Hold the pipelines of a folder by name, the file of each, and one error for each file that is left out."""

    pipelines: Mapping[str, Pipeline]
    files: Mapping[str, Path]
    problems: tuple[ConfigError, ...]


def read_folder(folder: Path, environment: Mapping[str, str], load: Load = load_pipeline) -> Folder:
    """Read every `*.yaml` of a folder.

    Where several files define one name, the file that bears the name has it, else the first; the others are problems.
    """
    problems = [*_absent(folder), *_overlooked(folder)]
    read: list[tuple[Path, Pipeline]] = []
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        try:
            read.append((path, load(path, environment)))
        except ConfigError as error:
            problems.append(error)
    files: dict[str, Path] = {}
    pipelines: dict[str, Pipeline] = {}
    for path, pipeline in sorted(read, key=lambda each: each[0].stem != each[1].name):
        owner = files.setdefault(pipeline.name, path)
        if owner == path:
            pipelines[pipeline.name] = pipeline
        else:
            problems.append(_second(path, pipeline.name, owner))
    return Folder(dict(sorted(pipelines.items())), files, tuple(problems))


def find_pipeline(name: str, folder: Path, environment: Mapping[str, str]) -> Pipeline:
    """Return one pipeline by name, and check no other file; raises ConfigError("config-invalid")."""
    own = folder / f"{name}{SUFFIX}"
    if _name(own) == name:
        return load_pipeline(own, environment)
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        if _name(path) == name:
            return load_pipeline(path, environment)
    if own.exists():  # it does not say a name, or none that can be read: it says itself what is wrong
        pipeline = load_pipeline(own, environment)
        raise invalid(own, f"expected the pipeline {name}, got {pipeline.name}; ask for that name", key="name")
    known = sorted({found for path in folder.glob(f"*{SUFFIX}") if (found := _name(path))})
    hint = f"; {nearest(name, known)}" if known else ""
    raise ConfigError(
        "config-invalid",
        f"expected a pipeline of {folder}, got {name!r}{hint}. To make it: penstock init {name}",
    )


def _name(path: Path) -> str | None:
    """Return the name that a file gives to its pipeline, whatever else is in it; None if it cannot be read."""
    try:
        name = Document.read(path).values.get("name")
    except ConfigError:
        return None
    return name if isinstance(name, str) else None


def _second(path: Path, name: str, owner: Path) -> ConfigError:
    return invalid(
        path,
        f"expected another name, got {name} twice; the one of {owner.name} counts: give this one another name, or delete "
        "the file",
        _line_of_name(path),
        "name",
    )


def _line_of_name(path: Path) -> int:
    return Document.read(path).line(("name",))


def _absent(folder: Path) -> Iterator[ConfigError]:
    if not folder.is_dir():
        yield ConfigError(
            "config-invalid",
            f"expected the folder of pipeline files at {folder}, found none; set PENSTOCK_PIPELINES to it",
        )


def _overlooked(folder: Path) -> Iterator[ConfigError]:
    for path in sorted(folder.glob("*.yml")):
        yield invalid(path, f"expected the ending {SUFFIX}, so this file is not read; rename it")

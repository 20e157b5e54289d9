"""The folder of pipeline files: which file defines which pipeline, and what is wrong with the others.

One file never takes another's pipeline away: a file that cannot be used is a problem with a name, next to the
pipelines that can.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.config.model import Pipeline, load_pipeline
from penstock.config.store_options import nearest
from penstock.config.yaml_document import Document, InvalidFileError, invalid
from penstock.errors import ConfigError

SUFFIX = ".yaml"
Load = Callable[[Path, Mapping[str, str]], Pipeline]


@dataclass(frozen=True)
class Folder:
    """Hold the pipelines of a folder by name, the file of each, and one error for each file that is left out.

    `seconds` are those files that are left out because another one has their name.
    """

    pipelines: Mapping[str, Pipeline]
    files: Mapping[str, Path]
    problems: tuple[ConfigError, ...]
    seconds: Mapping[str, Sequence[Path]]


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
    seconds: dict[str, list[Path]] = {}
    for path, pipeline in sorted(read, key=lambda each: each[0].stem != each[1].name):
        owner = files.setdefault(pipeline.name, path)
        if owner == path:
            pipelines[pipeline.name] = pipeline
        else:
            problems.append(_second(path, pipeline.name, owner))
            seconds.setdefault(pipeline.name, []).append(path)
    return Folder(dict(sorted(pipelines.items())), files, tuple(problems), seconds)


def clashes(pipeline: Pipeline, folder: Folder, path: Path | None = None) -> list[InvalidFileError]:
    """Say what a pipeline shares with others of the folder and may not; `path` is its file, where that is not the folder's.

    It leaves none of them out: which one came first only the ledger knows, and that one is to continue.
    """
    own = path or folder.files[pipeline.name]
    found = [
        invalid(own, _shared(key, value, folder.files[other.name]), Document.read(own).line(tuple(key.split("."))), key)
        for number, (key, value) in enumerate(_places(pipeline))
        for other in folder.pipelines.values()
        if other.name != pipeline.name and _places(other)[number] == (key, value)
    ]
    owner = folder.files.get(pipeline.name, own)
    named_so = [owner, *folder.seconds.get(pipeline.name, ()), own]
    return found + [_second(each, pipeline.name, owner) for each in dict.fromkeys(named_so) if not each.samefile(owner)]


def _places(pipeline: Pipeline) -> Sequence[tuple[str, str]]:
    """Return what two pipelines may not have in common, by the key that says it."""
    return (("lake.namespace", pipeline.lake_place), ("source.slot", f"{pipeline.source.connection} {pipeline.slot}"))


def _shared(key: str, value: str, other: Path) -> str:
    what = "a namespace" if key == "lake.namespace" else "a slot"
    name = value.rpartition(" ")[2]
    return f"expected {what} of its own, got {name}, which {other.name} has as well; give one of them another {key}"


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


def _second(path: Path, name: str, owner: Path) -> InvalidFileError:
    return invalid(
        path,
        f"expected another name, got {name} twice; the one of {owner.name} counts: give this one another name, or delete "
        "the file",
        Document.read(path).line(("name",)),
        "name",
    )


def _absent(folder: Path) -> Iterator[ConfigError]:
    if not folder.is_dir():
        yield ConfigError(
            "config-invalid",
            f"expected the folder of pipeline files at {folder}, found none; set PENSTOCK_PIPELINES to it",
        )


def _overlooked(folder: Path) -> Iterator[ConfigError]:
    for path in sorted(folder.glob("*.yml")):
        yield invalid(path, f"expected the ending {SUFFIX}, so this file is not read; rename it")

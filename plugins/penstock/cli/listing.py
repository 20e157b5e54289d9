"""What the folder of pipeline files holds, read without any connection."""

import json as json_text
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import typer

from penstock.cli import printing
from penstock.cli.options import Status
from penstock.codec import fields_of
from penstock.config.files import clashes, find_pipeline, read_folder
from penstock.config.json_schema import pipeline_schema
from penstock.config.model import Pipeline, load_pipeline
from penstock.config.paths import environment, folder
from penstock.config.yaml_document import InvalidFileError, Problem
from penstock.errors import ConfigError


@dataclass(frozen=True)
class _FileOutcome:
    """Hold what came of one file, or of a name that no file has."""

    file: str
    pipeline: Pipeline | None
    errors: Sequence[ConfigError] = ()

    def lines(self) -> Iterator[str]:
        """Yield a line for each problem, or the one that says that there is none."""
        yield from map(str, self._problems())
        if self.pipeline is not None and not self.errors:
            yield f"{self.file}: pipeline {self.pipeline.name} is valid"

    def plain(self) -> dict[str, object]:
        """Return it as plain data."""
        problems = [
            {"line": None, "key": None, "message": each}
            if isinstance(each, str)
            else fields_of(each, "line key message")
            for each in self._problems()
        ]
        return {"file": self.file, "pipeline": self.pipeline and self.pipeline.name, "problems": problems}

    def _problems(self) -> Iterator[Problem | str]:
        """Yield the problems that have a place in a file, and the messages of errors that have none."""
        for error in self.errors:
            yield from error.problems if isinstance(error, InvalidFileError) else [error.message]


def validate(wanted: Sequence[str], *, json: bool) -> None:
    """Read the files, print every problem, and end the process with a status."""
    found = [_read_file(each) for each in wanted] if wanted else list(_all())
    if json:
        printing.show_json([each.plain() for each in found])
    else:
        for line in (line for each in found for line in each.lines()):
            printing.show(line)
        if not found:
            printing.say(f"{folder()} holds no pipeline file yet. To make one: penstock init <name>")
    if any(each.errors for each in found):
        raise typer.Exit(Status.FOUND)


def show(*, json: bool) -> None:
    """Print every pipeline with what its file says."""
    found = list(_all())
    if json:
        printing.show_json([{**each.plain(), **(_settings(each.pipeline) if each.pipeline else {})} for each in found])
        return
    rows = [
        (each.pipeline.name, each.file, each.pipeline.source.connection, ", ".join(each.pipeline.tables.include))
        for each in found
        if each.pipeline is not None
    ]
    if rows:
        printing.show_table(("pipeline", "file", "source", "tables"), rows)
    for line in (line for each in found if each.pipeline is None for line in each.lines()):
        printing.say(line)
    if not rows:
        printing.say(f"no pipeline in {folder()} yet. To make one: penstock init <name>")


def print_schema() -> None:
    """Print the JSON schema of a pipeline file as it is shipped."""
    typer.echo(json_text.dumps(pipeline_schema(), indent=1))


def _settings(pipeline: Pipeline) -> dict[str, object]:
    return {
        "source": pipeline.source.connection,
        "slot": pipeline.slot,
        "publication": pipeline.publication,
        "namespace": pipeline.namespace,
        "include": pipeline.tables.include,
        "exclude": pipeline.tables.exclude,
    }


def read_named(wanted: str) -> tuple[Pipeline, Path | None]:
    """Return a pipeline given by its name or by its file, and that file; raises ConfigError."""
    path = file_of(wanted)
    return (load_pipeline(path, environment()) if path else find_pipeline(wanted, folder(), environment())), path


def file_of(wanted: str | None) -> Path | None:
    """Return the file that was asked for, None where a name was."""
    return Path(wanted) if wanted and wanted.endswith((".yaml", ".yml", ".sample")) else None


def _read_file(wanted: str) -> _FileOutcome:
    try:
        pipeline, path = read_named(wanted)
        return _FileOutcome(wanted, pipeline, clashes(pipeline, read_folder(folder(), environment()), path))
    except ConfigError as error:
        return _refused(wanted, error)


def _all() -> Iterator[_FileOutcome]:
    read = read_folder(folder(), environment())
    alone = replace(read, seconds={})  # second files of a name are problems of their own
    for name, pipeline in read.pipelines.items():
        yield _FileOutcome(str(read.files[name]), pipeline, clashes(pipeline, alone))
    for error in read.problems:
        yield _refused(str(folder()), error)


def _refused(named: str, error: ConfigError) -> _FileOutcome:
    file = str(error.problems[0].path) if isinstance(error, InvalidFileError) else named
    return _FileOutcome(file, None, [error])

"""The command line as a person types it, in processes of its own: help, versions, completion, files, runbooks, statuses."""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from penstock.cli.app import app
from penstock.cli.context import spark_submit
from penstock.cli.options import MEANINGS, NOT_TRIED, PLAN_MIGRATION, Mode, Status, status_of, worst
from penstock.conditions import CONDITIONS, Directive
from penstock.errors import PenstockError
from penstock.flow.spark_job import SparkJob
from penstock.ledger import verifications
from tests.config.bad_pipeline_files import BAD, LEAST
from tests.pipeline_env import ROOT

Type = Callable[..., Result]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of pipeline files: one good, one bad."""
    made = tmp_path / "pipelines"
    made.mkdir()
    (made / "good.yaml").write_text(LEAST.format(name="good"))
    (made / "size_of_words.yaml").write_text(LEAST.format(name="size_of_words") + BAD["size_of_words"].text)
    return made


@pytest.fixture
def penstock(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Type:
    """Run the command line on the folder, without any connection."""
    for name in [name for name in os.environ if name.startswith("AIRFLOW_CONN_")]:
        monkeypatch.delenv(name)

    def run(*words: str, more: Mapping[str, str] | None = None) -> Result:
        environment = {"PENSTOCK_PIPELINES": str(folder), "COLUMNS": "200", "PENSTOCK_HOME": str(ROOT), **(more or {})}
        return CliRunner().invoke(app, words, env=environment, prog_name="penstock")

    return run


def test_the_command_is_deployed_under_its_own_name() -> None:
    done = subprocess.run([ROOT / "bin" / "penstock", "--version"], capture_output=True, text=True, check=True)

    assert re.fullmatch(r"penstock \d\S+ \(Python 3\.11\.\d+, apache-airflow \S+, .*\)\n", done.stdout)


def test_what_only_prints_imports_nothing_that_takes_its_time() -> None:
    heavy = ("pyarrow", "numpy", "duckdb", "psycopg", "sqlalchemy", "airflow", "pyiceberg")
    script = f"""
import sys
from penstock.cli.app import app
for words in ["--help"], ["capture", "--help"], ["runbook", "slot-lost"]:
    try:
        app(words, prog_name="penstock")
    except SystemExit:
        print("HEAVY", [name for name in {heavy!r} if name in sys.modules])
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "plugins")}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)

    assert done.stdout.count("HEAVY []\n") == 3
    assert "Usage: penstock [OPTIONS] COMMAND" in done.stdout


def test_the_help_of_every_verb_ends_with_an_example_that_can_be_typed(penstock: Type) -> None:
    group: Any = typer.main.get_command(app)
    for name, command in group.commands.items():
        assert command.epilog is not None, name
        example = command.epilog.removeprefix("Example: ").partition(" | ")[0]
        program, verb, *words = shlex.split(example)

        assert (program, verb) == ("penstock", name)
        command.make_context(name, words)
        assert example in penstock(name, "--help", more={"COLUMNS": "100"}).stdout


# --- completion ------------------------------------------------------------------------------------------------------

PROTOCOLS = {
    "bash": {"COMP_WORDS": "penstock {words}", "COMP_CWORD": "{last}"},
    "zsh": {"_TYPER_COMPLETE_ARGS": "penstock {words}"},
    "fish": {"_TYPER_COMPLETE_ARGS": "penstock {words}", "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
}


@pytest.mark.parametrize("shell", PROTOCOLS)
def test_a_shell_completes_verbs_pipelines_and_runbooks(penstock: Type, shell: str) -> None:
    for words, wanted in (("val", "validate"), ("status go", "good"), ("runbook slot-lo", "slot-lost")):
        numbers = {"words": words, "last": str(words.count(" ") + 1)}
        asked = {key: value.format(**numbers) for key, value in PROTOCOLS[shell].items()}
        done = penstock(more={"_PENSTOCK_COMPLETE": f"complete_{shell}", **asked})

        assert wanted in re.split(r"[\s\"']+", done.stdout), (shell, words, done.stdout, done.stderr)


def test_the_completion_works_in_a_real_bash(folder: Path) -> None:
    asked = """
source <(penstock --show-completion bash)
COMP_WORDS=(penstock status go) COMP_CWORD=2
function=$(complete -p penstock)
function=${function#*-F }
${function% penstock} penstock
echo ${COMPREPLY[@]}
"""
    path = f"{ROOT / 'bin'}:{os.environ['PATH']}"
    more = {"PATH": path, "PENSTOCK_PIPELINES": str(folder), "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    done = subprocess.run(
        ["bash", "-c", asked], env={**os.environ, **more}, capture_output=True, text=True, check=False
    )

    assert done.stdout.split() == ["good"], done.stderr


# --- files -----------------------------------------------------------------------------------------------------------


def test_validate_names_every_problem_of_every_file_and_needs_no_connection(penstock: Type, folder: Path) -> None:
    bad, file = BAD["size_of_words"], folder / "size_of_words.yaml"
    (folder / "ending.yml").write_text(LEAST.format(name="ending"))

    said, plain = penstock("validate"), penstock("validate", "--json")
    one = penstock("validate", "good")

    assert (said.exit_code, plain.exit_code, one.exit_code) == (Status.FOUND, Status.FOUND, Status.DONE)
    assert f"{file}:{bad.line}: {bad.key}: {bad.message}" in said.stdout.splitlines()
    assert f"{folder / 'good.yaml'}: pipeline good is valid" in said.stdout.splitlines()
    found = {Path(each["file"]).name: each for each in json.loads(plain.stdout)}
    assert found["size_of_words.yaml"]["problems"] == [{"line": bad.line, "key": bad.key, "message": bad.message}]
    assert found["ending.yml"]["problems"][0]["message"].startswith("expected the ending .yaml")
    assert found["good.yaml"] == {"file": str(folder / "good.yaml"), "pipeline": "good", "problems": []}
    assert one.stdout == "good: pipeline good is valid\n"


def test_validate_refuses_two_pipelines_with_one_namespace_and_two_files_with_one_name(
    penstock: Type, folder: Path
) -> None:
    (folder / "good.yaml").write_text(LEAST.format(name="good"))
    (folder / "other.yaml").write_text(LEAST.format(name="other") + "lake: {namespace: good}\n")
    (folder / "copy.yaml").write_text(LEAST.format(name="good"))

    every, one, path = (
        penstock("validate"),
        penstock("validate", "good"),
        penstock("validate", str(folder / "copy.yaml")),
    )

    for said in (every, one, path):
        assert said.exit_code == Status.FOUND
        assert said.stdout.count("expected a namespace of its own, got lake.good, which") == (2 if said is every else 1)
        assert said.stdout.count("expected another name, got good twice; the one of good.yaml counts") == 1


def test_the_schema_that_is_printed_is_the_one_that_is_shipped(penstock: Type) -> None:
    printed = penstock("validate", "--schema").stdout

    assert printed == (ROOT / "include" / "pipeline.schema.json").read_text()


def test_list_names_the_pipelines_and_the_files_that_define_none(penstock: Type, folder: Path) -> None:
    said, plain = penstock("list"), penstock("list", "--json")

    assert said.exit_code == plain.exit_code == Status.DONE
    assert "public.*" in said.stdout
    assert "size_of_words.yaml:3: capture.max_wal_bytes" in said.stderr
    assert {each["pipeline"] for each in json.loads(plain.stdout)} == {"good", None}


def test_an_empty_folder_says_how_to_make_the_first_pipeline(penstock: Type, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()

    for verb in ("list", "validate"):
        done = penstock(verb, more={"PENSTOCK_PIPELINES": str(tmp_path / "empty")})
        assert (done.exit_code, "penstock init <name>" in done.stderr) == (Status.DONE, True), verb


# --- runbooks --------------------------------------------------------------------------------------------------------


def test_a_runbook_is_printed_with_the_pipelines_name_and_found_by_what_an_error_prints(penstock: Type) -> None:
    page = (ROOT / "docs" / "runbooks" / "slot-lost.md").read_text()

    for slug in ("slot-lost", "[slot-lost]", "docs/runbooks/slot-lost.md"):
        assert penstock("runbook", slug).stdout == f"{page}\n"
    assert penstock("runbook", "slot-lost", "shop").stdout == f"{page}\n".replace("<pipeline>", "shop")
    assert penstock("runbook", "slot-lost", "--path").stdout.strip().endswith("docs/runbooks/slot-lost.md")
    assert all(slug in penstock("runbook").stdout for slug in ("slot-lost", "verify-differs"))


def test_the_runbook_of_a_wrong_call_is_its_section_found_by_the_place_that_the_error_prints(penstock: Type) -> None:
    page = ROOT / "docs" / "runbooks" / "wrong-calls.md"
    section = page.read_text().partition("\n## table-unknown\n")[2].partition("\n## ")[0]

    for named in ("table-unknown", "[table-unknown]", "docs/runbooks/wrong-calls.md#table-unknown"):
        assert penstock("runbook", named).stdout == f"# table-unknown\n{section}\n"
    assert penstock("runbook", "table-unknown", "--path").stdout.strip() == str(page)


def test_a_runbook_that_does_not_exist_is_refused_with_the_nearest(penstock: Type) -> None:
    done = penstock("runbook", "slot-lots")

    assert done.exit_code == Status.USAGE
    assert "did you mean 'slot-lost'?" in done.stderr


# --- statuses and errors ---------------------------------------------------------------------------------------------


def test_every_error_ends_with_a_status_of_the_table() -> None:
    by_directive = {slug: each.directive for slug, each in CONDITIONS.items() if each.directive}
    statuses = {slug: status_of(PenstockError(slug, "")) for slug in by_directive}

    assert set(MEANINGS) == set(Status)
    assert set(statuses.values()) == {Status.REFUSED, Status.FOUND, Status.RETRY, Status.DECIDE}
    assert {statuses[slug] for slug, each in by_directive.items() if each is Directive.HALT} == {Status.DECIDE}
    assert {statuses[slug] for slug, each in by_directive.items() if each is Directive.RETRY} == {Status.RETRY}
    assert worst([Status.DONE, Status.REFUSED, Status.FOUND]) is Status.REFUSED
    assert max(PLAN_MIGRATION) == NOT_TRIED


def test_the_modes_of_verify_are_those_of_the_ledger() -> None:
    assert Mode == verifications.Mode


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["status"], Status.USAGE, "expected the name of a pipeline, or --all"),
        (["status", "good", "--all"], Status.USAGE, "expected the name of a pipeline, or --all"),
        (["resync", "good"], Status.USAGE, "expected either --table, once or more, or --new"),
        (["verify", "good", "--now", "--mode", "sample"], Status.USAGE, "leave out --mode sample"),
        (["statsu", "good"], Status.USAGE, "No such command 'statsu'"),
        (["status", "goood"], Status.REFUSED, "got 'goood'; did you mean 'good'?"),
        (["status", "size_of_words"], Status.REFUSED, "Next: penstock runbook config-invalid size_of_words"),
        (["status", "good"], Status.REFUSED, "Next: penstock runbook connection-missing good"),
        (["plan-migration", "good"], NOT_TRIED, "files"),
    ],
)
def test_a_wrong_call_says_what_is_wrong_and_ends_with_its_status(
    penstock: Type, words: list[str], status: int, said: str
) -> None:
    done = penstock(*words)

    assert (done.exit_code, done.stdout) == (status, ""), done.stderr
    assert said in done.stderr


def test_with_all_each_pipeline_answers_or_says_why_not_and_json_stays_json(penstock: Type) -> None:
    done = penstock("status", "--all", "--json")

    assert done.exit_code == Status.REFUSED
    good, bad = json.loads(done.stdout)
    assert (good["pipeline"], good["error"]["slug"]) == ("good", "connection-missing")
    assert bad["error"]["slug"] == "config-invalid"
    assert "size_of_words.yaml:3" in bad["error"]["message"]


def test_a_line_of_sparks_log_that_is_no_utf_8_ends_no_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "spark-submit"
    program.write_text("#!/bin/sh\nprintf 'a\\377b\\nthe end\\n'")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    said: list[str] = []

    spark_submit("local[1]", said.append)(SparkJob("job", Path("a.py"), "plan", (), Path("a.zip"), "1g", {}, {}))

    assert said == ["a\N{REPLACEMENT CHARACTER}b", "the end"]

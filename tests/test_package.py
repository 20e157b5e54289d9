"""The zip that Spark gets holds the whole library, the SQL included, and the same sources give the same bytes."""

import marshal
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from penstock import package
from penstock.cli.app import app
from penstock.cli.options import Status
from stack.paths import Project

ROOT = Project.here().root

USE = """
import sys
import penstock.errors, penstock.lsn, penstock.jobs.plans, penstock.sql
assert penstock.__file__.startswith(sys.argv[1]), penstock.__file__
print(penstock.lsn.Lsn.parse("16/B374D848"))
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    library = tmp_path / "plugins" / "penstock"
    library.mkdir(parents=True)
    (library / "__init__.py").write_text("")
    (library / "lsn.py").write_text("A = 1\n")
    statements = tmp_path / "include" / "sql" / "source"
    statements.mkdir(parents=True)
    (statements / "slots.sql").write_text("select 1\n")
    (library / "statements").symlink_to("../../include/sql")
    return tmp_path


def test_the_zip_imports_without_the_checkout(tmp_path: Path):
    archive = tmp_path / "penstock.zip"
    package.build(ROOT, archive)

    said = subprocess.run(
        [sys.executable, "-c", USE, str(archive)],
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"PYTHONPATH": str(archive)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert said.returncode == 0, said.stderr
    assert said.stdout == "16/B374D848\n"


def test_constant_sql_travels_within_the_library(checkout: Path):
    package.build(checkout, checkout / "out.zip")

    with zipfile.ZipFile(checkout / "out.zip") as archive:
        assert archive.namelist() == [
            "penstock/__init__.py",
            "penstock/__init__.pyc",
            "penstock/lsn.py",
            "penstock/lsn.pyc",
            "penstock/statements/source/slots.sql",
        ]
        assert archive.read("penstock/statements/source/slots.sql") == b"select 1\n"


def test_the_same_sources_give_the_same_bytes_whatever_their_times(checkout: Path):
    assert package.build(checkout, checkout / "out.zip")
    first = (checkout / "out.zip").read_bytes()
    os.utime(checkout / "plugins" / "penstock" / "lsn.py", (0, 0))

    assert not package.build(checkout, checkout / "out.zip")
    assert (checkout / "out.zip").read_bytes() == first


def test_modules_are_compiled_in_the_zip_and_another_python_makes_it_again(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
):
    package.build(checkout, checkout / "out.zip")
    with zipfile.ZipFile(checkout / "out.zip") as archive:
        compiled = marshal.loads(archive.read("penstock/lsn.pyc")[16:])

    monkeypatch.setattr(package, "MAGIC_NUMBER", b"\0\0\r\n")

    assert compiled.co_filename == "penstock/lsn.py"
    assert package.build(checkout, checkout / "out.zip")


def test_a_changed_source_makes_a_new_zip_and_compiled_leftovers_do_not(checkout: Path):
    package.build(checkout, checkout / "out.zip")
    cache = checkout / "plugins" / "penstock" / "__pycache__"
    cache.mkdir()
    (cache / "lsn.cpython-311.pyc").write_bytes(b"compiled")
    assert not package.build(checkout, checkout / "out.zip")

    (checkout / "plugins" / "penstock" / "lsn.py").write_text("A = 2\n")

    assert package.build(checkout, checkout / "out.zip")


def test_the_command_line_writes_the_zip_and_says_whether_it_changed(tmp_path: Path):
    archive = tmp_path / "made" / "penstock.zip"

    said = [CliRunner().invoke(app, ["package", str(archive)], env={"COLUMNS": "400"}).output for _ in range(2)]

    assert said == [f"{archive}: written\n", f"{archive}: unchanged\n"]
    with zipfile.ZipFile(archive) as whole:
        assert {
            "penstock/cli/app.py",
            "penstock_spark/merge.py",
            "penstock/statements/source/peek/transactions.sql",
        } <= set(whole.namelist())


def test_without_a_target_the_zip_goes_where_submissions_look_for_it(tmp_path: Path):
    archive = tmp_path / "deployed.zip"

    assert CliRunner().invoke(app, ["package"], env={"PENSTOCK_ZIP": str(archive)}).exit_code == 0

    assert zipfile.is_zipfile(archive)
    assert [path.name for path in tmp_path.iterdir()] == ["deployed.zip"], "no draft stays behind"


def test_a_target_that_cannot_be_written_is_named(tmp_path: Path):
    (tmp_path / "file").write_text("")

    said = CliRunner().invoke(app, ["package", str(tmp_path / "file" / "out.zip")], env={"COLUMNS": "400"})

    assert said.exit_code == Status.REFUSED
    assert f"expected to write {tmp_path / 'file' / 'out.zip'}" in said.output

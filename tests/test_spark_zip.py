"""The zip that Spark gets holds the whole library, the SQL included, and the same sources give the same bytes."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from stack import package
from stack.paths import Project

ROOT = Project.here().root

USE = """
import sys
import penstock.errors, penstock.lsn, penstock.jobs.merge_plan, penstock.sql
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


def test_constant_sql_travels_as_a_package(checkout: Path):
    package.build(checkout, checkout / "out.zip")

    with zipfile.ZipFile(checkout / "out.zip") as archive:
        assert archive.namelist() == [
            "penstock/__init__.py",
            "penstock/lsn.py",
            "penstock_sql/__init__.py",
            "penstock_sql/source/__init__.py",
            "penstock_sql/source/slots.sql",
        ]
        assert archive.read("penstock_sql/source/slots.sql") == b"select 1\n"


def test_the_same_sources_give_the_same_bytes_whatever_their_times(checkout: Path):
    assert package.build(checkout, checkout / "out.zip")
    first = (checkout / "out.zip").read_bytes()
    os.utime(checkout / "plugins" / "penstock" / "lsn.py", (0, 0))

    assert not package.build(checkout, checkout / "out.zip")
    assert (checkout / "out.zip").read_bytes() == first


def test_a_changed_source_makes_a_new_zip_and_compiled_leftovers_do_not(checkout: Path):
    package.build(checkout, checkout / "out.zip")
    cache = checkout / "plugins" / "penstock" / "__pycache__"
    cache.mkdir()
    (cache / "lsn.cpython-311.pyc").write_bytes(b"compiled")
    assert not package.build(checkout, checkout / "out.zip")

    (checkout / "plugins" / "penstock" / "lsn.py").write_text("A = 2\n")

    assert package.build(checkout, checkout / "out.zip")

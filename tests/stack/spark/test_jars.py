"""Spark's two jars: fetched whole or not at all, from the usual repository or from one of the user's choice."""

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from stack.errors import StackError
from stack.paths import Project
from stack.spark import jars
from stack.spark.jars import Jar

POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>org.example</groupId><artifactId>tiny</artifactId><version>1.0</version></project>"""
CONTENT = b"not really a jar"
TINY = Jar("org.example", "tiny", "1.0", hashlib.sha256(CONTENT).hexdigest())


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch) -> Path:
    """A Maven repository in a folder, with one artefact."""
    artefact = tmp_path / "mirror" / "org" / "example" / "tiny" / "1.0"
    artefact.mkdir(parents=True)
    (artefact / "tiny-1.0.pom").write_text(POM)
    (artefact / "tiny-1.0.jar").write_bytes(CONTENT)
    monkeypatch.setenv(jars.MIRROR, (tmp_path / "mirror").as_uri())
    return artefact


def test_the_projects_jars_are_here_byte_for_byte(java_home: Path):
    folder = Project.here().jars

    assert jars.missing(folder) == []
    assert [Path(part).name for part in jars.class_path(folder).split(":")] == [
        "iceberg-spark-runtime-4.1_2.13-1.12.0.jar",
        "postgresql-42.7.14.jar",
    ]


def test_a_jar_comes_from_the_mirror_that_the_environment_names(mirror: Path, tmp_path: Path, java_home: Path):
    folder = tmp_path / "jars"

    jars.fetch([TINY], folder, java_home, tmp_path / "fetch.log")

    assert [path.name for path in folder.iterdir()] == ["tiny-1.0.jar"]
    assert TINY.is_whole(folder / "tiny-1.0.jar")


def test_other_bytes_than_the_pinned_ones_are_refused_and_not_kept(mirror: Path, tmp_path: Path, java_home: Path):
    (mirror / "tiny-1.0.jar").write_bytes(CONTENT + b"!")
    folder = tmp_path / "jars"

    with pytest.raises(StackError, match="with the SHA-256") as caught:
        jars.fetch([TINY], folder, java_home, tmp_path / "fetch.log")

    assert list(folder.iterdir()) == []
    assert caught.value.log.exists()


def test_a_jar_that_is_nowhere_leaves_a_readable_reason(mirror: Path, tmp_path: Path, java_home: Path):
    with pytest.raises(StackError, match=f"set {jars.MIRROR}") as caught:
        jars.fetch([replace(TINY, version="2.0")], tmp_path / "jars", java_home, tmp_path / "fetch.log")

    assert "not found" in caught.value.log.read_text()


def test_a_damaged_jar_counts_as_missing(tmp_path: Path):
    (tmp_path / jars.POSTGRESQL.file_name).write_bytes(b"half")

    assert jars.missing(tmp_path) == [jars.ICEBERG, jars.POSTGRESQL]


def test_the_proxies_of_the_environment_are_passed_to_java():
    found = {"https": "http://user:secret@proxy.example:3128", "no": "localhost"}

    assert list(jars._proxies(found)) == ["-Dhttps.proxyHost=proxy.example", "-Dhttps.proxyPort=3128"]

"""The archive of Spark's classes: used where it fits, passed over in silence where it does not."""

import os
import subprocess
from pathlib import Path

import pytest

from stack.paths import Project
from stack.spark import class_archive, java, spark_conf
from tests.pipeline_env import spark_variables

PROGRAM = "from pyspark.sql import SparkSession; print('rows', SparkSession.builder.getOrCreate().range(7).count())"


@pytest.fixture
def archived(java_home: Path, tmp_path: Path) -> Path:
    """The project's folder of jars, with its archive."""
    if not (java_home / "lib" / "server" / "classes.jsa").exists():
        pytest.skip("this Java has no archive of its own, on which another could stand")
    folder = Project.here().jars.resolve()
    said = class_archive.make(folder, spark_conf.home(), java_home, spark_conf.class_path(folder), tmp_path / "log")
    assert (folder / class_archive.ARCHIVE).exists(), said
    return folder


def submitted(java_home: Path, conf: Path, folder: Path, java_options: str) -> str:
    """Run a small application with Java options of its own; return all that it printed."""
    program = folder / "program.py"
    program.write_text(PROGRAM)
    environment = {**os.environ, **spark_variables(java_home, conf)}
    command = [str(spark_conf.home() / "bin" / "spark-submit"), "--driver-java-options", java_options, str(program)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "rows 7" in done.stdout
    return done.stdout + done.stderr


@pytest.mark.slow
def test_an_application_takes_most_of_its_classes_from_the_archive(
    archived: Path, java_home: Path, spark_conf_dir: Path, tmp_path: Path
) -> None:
    log = tmp_path / "classes.log"
    options = f"{java.SHORT_LIVED}{class_archive.options(archived)} -Xlog:class+load:file={log}"

    submitted(java_home, spark_conf_dir, tmp_path, options)

    classes = [line for line in log.read_text().splitlines() if "source:" in line]
    assert sum("shared objects file" in line for line in classes) > len(classes) // 2


@pytest.mark.slow
def test_an_archive_that_does_not_fit_is_passed_over_in_silence(
    java_home: Path, spark_conf_dir: Path, tmp_path: Path
) -> None:
    (tmp_path / class_archive.ARCHIVE).write_bytes(b"of another Java")

    said = submitted(java_home, spark_conf_dir, tmp_path, class_archive.options(tmp_path))

    assert "archive" not in said
    assert "cds" not in said


def test_it_is_made_once_and_where_there_is_none_java_gets_no_option(
    archived: Path, java_home: Path, tmp_path: Path
) -> None:
    made = (archived / class_archive.ARCHIVE).stat().st_mtime_ns

    again = class_archive.make(
        archived, spark_conf.home(), java_home, spark_conf.class_path(archived), tmp_path / "log"
    )

    assert (again, (archived / class_archive.ARCHIVE).stat().st_mtime_ns) == ("unchanged", made)
    assert class_archive.options(tmp_path) == ""

"""Java for Spark: the system's where it fits, else the packaged one, which does all that we need of Spark."""

import os
import subprocess
from pathlib import Path

import pytest

from stack.spark import java

APPLICATION = """
import os
from pyspark.sql import SparkSession, functions as f
spark = SparkSession.builder.getOrCreate()
for name, variable in (("uri", "URI"), ("jdbc.user", "USER"), ("jdbc.password", "PASSWORD")):
    spark.conf.set(f"spark.sql.catalog.lake.{name}", os.environ[f"PENSTOCK_CATALOG_{variable}"])
spark.sql("create namespace if not exists lake.java")
spark.sql("create table lake.java.t (id bigint) using iceberg tblproperties ('format-version' = '3')")
spark.range(10).writeTo("lake.java.t").append()
spark.sql("merge into lake.java.t t using (select 3l id) s on t.id = s.id when matched then delete")
double = f.udf(lambda n: 2 * n, "bigint")
print("sum", spark.table("lake.java.t").select(f.sum(double("id"))).first()[0])
print("java", spark._jvm.System.getProperty("java.version"))
"""


def fake_java(home: Path, version: str, status: int = 0) -> Path:
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\nexit {status}\n")
    program.chmod(0o755)
    return home


@pytest.mark.parametrize("version", ["17.0.15", "21.0.8"])
def test_the_java_that_java_home_names_is_taken_when_spark_runs_on_it(tmp_path: Path, version: str):
    home = fake_java(tmp_path / "jvm", version)

    assert java.home(tmp_path / "jre", {"JAVA_HOME": str(home)}) == home


@pytest.mark.parametrize(("version", "status"), [("11.0.2", 0), ("25.0.1", 0), ("17.0.15", 1)])
def test_a_java_that_is_too_old_too_new_or_without_the_vector_module_is_passed_over(
    tmp_path: Path, version: str, status: int
):
    unfit = fake_java(tmp_path / "jvm", version, status)

    assert java.home(tmp_path / "jre", {"JAVA_HOME": str(unfit), "PATH": ""}) == tmp_path / "jre"


def test_a_java_on_the_path_is_taken_where_java_home_is_not_set(tmp_path: Path):
    home = fake_java(tmp_path / "jvm", "17.0.1")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(home / "bin" / "java")

    assert java.home(tmp_path / "jre", {"PATH": str(tmp_path / "bin")}) == home


def test_the_quick_compiler_alone_may_keep_as_much_code_as_all_compilers_together(java_home: Path):
    def room(*options: str) -> str:
        command = [str(java_home / "bin" / "java"), *options, "-XX:+PrintFlagsFinal", "-version"]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        (line,) = (line for line in said.splitlines() if " ReservedCodeCacheSize " in line)
        return line.split("=")[1].split()[0]

    assert room(*java.SHORT_LIVED.split()) == room()


def test_the_packaged_java_drops_the_module_that_it_lacks_and_keeps_every_other_argument(tmp_path: Path):
    home = java.packaged_home(tmp_path)

    said = subprocess.run(
        [home / "bin" / "java", java.VECTOR, "-Da=with space", "-XshowSettings:properties", "-version"],
        capture_output=True,
        text=True,
        check=True,
    )

    assert "a = with space" in said.stderr
    assert 'version "21.' in said.stderr


@pytest.mark.slow
def test_spark_writes_merges_and_runs_python_on_the_packaged_java(tmp_path: Path, lake, spark_conf_dir: Path):
    application = tmp_path / "application.py"
    application.write_text(APPLICATION)
    environ = (
        os.environ
        | lake.environment()
        | {
            "JAVA_HOME": str(java.packaged_home(tmp_path / "jre")),
            "SPARK_CONF_DIR": str(spark_conf_dir),
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
    )

    said = subprocess.run(
        ["spark-submit", application],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )

    assert said.returncode == 0, said.stderr[-3000:]
    assert "sum 84" in said.stdout
    assert "java 21." in said.stdout

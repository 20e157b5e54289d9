"""With event logs on, nothing that Spark writes or shows holds a secret or a row's value: those are in data files only."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyspark.sql import SparkSession

from penstock.flow.spark_job import SparkJob
from penstock_spark.session import java
from tests.conftest import LakeCatalog
from tests.env_fixtures import RealSubmit
from tests.pipeline_env import PipelineEnv

pytestmark = pytest.mark.spark

VALUE, KEY = "a-marked-row-value", 918273645
STORE = {"AWS_ACCESS_KEY_ID": "marked-access-key", "AWS_SECRET_ACCESS_KEY": "marked-secret-key"}
DATA = (".parquet", ".avro", ".crc")  # manifests hold the bounds of columns, as Iceberg specifies


@contextmanager
def event_log(spark: SparkSession, folder: Path) -> Iterator[None]:
    """Write what happens meanwhile as an application with `spark.eventLog.enabled` does."""
    context: Any = spark.sparkContext._jsc.sc()
    conf = context.getConf().set("spark.eventLog.compress", "false")
    conf.set("spark.eventLog.logStageExecutorMetrics", "true").set("spark.eventLog.rolling.enabled", "false")
    listener = java("org.apache.spark.scheduler.EventLoggingListener")(
        "attack",
        java("scala.Option").empty(),
        java("java.net.URI")(f"file://{folder}"),
        conf,
        context.hadoopConfiguration(),
    )
    listener.start()
    context.addSparkListener(listener)
    try:
        yield
        context.listenerBus().waitUntilEmpty()
    finally:
        context.removeSparkListener(listener)
        listener.stop()


def whole_job(env: PipelineEnv) -> None:
    """Run every application: copy, merge with updates, moves and deletes, changelog, maintenance."""
    env.settings["changelog"] = {"slack": 0, "tables": {"include": ["public.*"]}}
    env.settings["maintain"] = {"patience": "1s"}
    env.sql(
        "create table t (id int primary key, v text); create table bag (v text); alter table bag replica identity full"
    )
    env.sql(f"insert into t values ({KEY}, '{VALUE}'), (2, 'b'); insert into bag values ('{VALUE}'), ('{VALUE}')")
    ((start,),) = env.sql("select clock_timestamp()")
    env.bootstrap()
    env.sql(f"update t set v = v || '+' where id = {KEY}; update t set id = {KEY + 1} where id = 2")
    env.sql(f"delete from bag where ctid in (select ctid from bag limit 1); delete from t where id = {KEY + 1}")
    ((end,),) = env.sql("select clock_timestamp()")
    env.follow()
    env.capture()
    env.changelog(start, end)
    env.maintain()


def texts_in(*folders: Path) -> dict[str, str]:
    """Return all files below some folders that hold no rows by their nature, as text by name."""
    found = (path for folder in folders for path in folder.rglob("*"))
    return {str(path): path.read_text(errors="replace") for path in found if path.is_file() and path.suffix not in DATA}


def rows(*folders: Path) -> str:
    """Return what all Parquet files below some folders hold, as text."""
    files = [str(path) for folder in folders for path in folder.rglob("*.parquet")]
    with duckdb.connect() as db:
        return "\n".join(str(db.execute("select * from read_parquet(?)", [file]).fetchall()) for file in files)


def holding(texts: dict[str, str], *marks: str) -> list[str]:
    """Name the texts that hold one of these, with what is around it."""
    return [
        f"{name}: ...{text[max(0, text.index(mark) - 200) : text.index(mark) + 60]}..."
        for name, text in texts.items()
        for mark in marks
        if mark in text
    ]


def test_no_application_writes_a_secret_or_a_row_to_the_event_log_or_its_own_log(
    env16: PipelineEnv,
    lake: LakeCatalog,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    env, log = env16, tmp_path / "events"
    log.mkdir()
    submit = PipelineEnv.submit

    def with_store_login(self: PipelineEnv, job: SparkJob) -> None:
        submit(self, SparkJob(*(getattr(job, name) for name in SparkJob.__slots__[:-1]), {**job.environment, **STORE}))

    monkeypatch.setattr(PipelineEnv, "submit", with_store_login)
    with event_log(env.spark, log):
        whole_job(env)

    captured = capfd.readouterr()
    texts = texts_in(log, env.landing, lake.warehouse / env.name) | {"out": captured.out, "err": captured.err}
    texts["lines"] = "\n".join(env.lines)
    events = "".join(text for name, text in texts.items() if name.startswith(str(log)))
    assert "SparkListenerJobStart" in events
    assert "SparkListenerStageSubmitted" in events
    assert "SparkListenerSQLExecutionStart" in events
    secrets = (lake.database.server.password, lake.environment()["PENSTOCK_CATALOG_URI"], *STORE.values())
    assert holding(texts, *secrets) == []
    assert holding(texts, VALUE, str(KEY)) == []
    data = rows(env.landing, lake.warehouse / env.name)
    assert VALUE in data
    assert holding({"data": data}, *secrets) == []


@pytest.mark.slow
def test_no_application_under_spark_submit_shows_a_secret_or_a_row(
    env16: PipelineEnv,
    lake: LakeCatalog,
    real_submit: RealSubmit,
    shell_with_spark: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    env, log, conf = env16, tmp_path / "events", tmp_path / "spark-conf"
    log.mkdir()
    shutil.copytree(shell_with_spark["SPARK_CONF_DIR"], conf)
    with (conf / "spark-defaults.conf").open("a") as file:
        file.write(f"spark.eventLog.enabled true\nspark.eventLog.dir file://{log}\nspark.eventLog.compress false\n")
        file.write("spark.sql.variable.substitute true\n")  # our applications switch it off all the same
    for name, value in {"SPARK_CONF_DIR": str(conf), **STORE}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(PipelineEnv, "submit", lambda self, job: real_submit(self.lines.append)(job))
    env.settings["spark"] = {"driver_memory": "1g"}
    variable = "${env:PENSTOCK_CATALOG_PASSWORD}"
    env.sql(f'create table "{variable}" (id int primary key, "{variable}" text); insert into "{variable}" values (1)')
    whole_job(env)

    assert len(list(log.iterdir())) == 5  # two merges
    assert len(env.lake_rows(variable, f"`{variable}`")) == 1
    texts = texts_in(log, env.landing, lake.warehouse / env.name) | {"lines": "\n".join(env.lines)}
    secrets = (lake.database.server.password, lake.environment()["PENSTOCK_CATALOG_URI"], *STORE.values())
    assert holding(texts, *secrets) == []
    assert holding(texts, VALUE, str(KEY)) == []
    assert holding({"data": rows(env.landing, lake.warehouse / env.name)}, *secrets) == []

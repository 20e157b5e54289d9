"""Sessions have what catalog, store and landing zone need, from the driver's environment."""

import json

import pytest

from penstock.landing import store
from penstock_spark import session
from tests.waiting import wait_until

pytestmark = pytest.mark.spark

LOGIN = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "hidden"}


def store_login(worker, table):
    """Return the login that the catalog of a session gives to its tables, and all settings of the session."""
    worker.sql("create namespace if not exists lake.logins")
    worker.sql(f"create table lake.logins.{table} (id int) using iceberg")
    loaded = session.java("org.apache.iceberg.spark.Spark3Util").loadIcebergTable(
        worker._jsparkSession, f"lake.logins.{table}"
    )
    given = loaded.io().properties()
    return [given.get(f"s3.{name}") for name in ("access-key-id", "secret-access-key", "session-token")]


def test_the_stores_login_goes_to_the_tables_of_the_session_and_no_secret_stays_in_its_settings(spark, lake):
    with session.worker(spark, "lake", lake.environment() | LOGIN) as worker:
        assert store_login(worker, "given") == ["key", "hidden", None]
        settings = worker.conf.getAll
        assert "spark.sql.catalog.lake.warehouse" in settings
        assert not {f"spark.sql.catalog.lake.{name}" for name in (*session.SECRETS, *session.STORE_LOGIN)} & set(
            settings
        )


def test_without_a_login_in_the_environment_the_catalog_finds_its_own(spark, lake):
    with session.worker(spark, "lake", lake.environment()) as worker:
        assert store_login(worker, "found") == [None, None, None]


def test_a_session_gives_its_connections_to_the_catalog_back(spark, lake):
    def connections() -> int:
        with lake.database.connect() as connection:
            [number] = connection.execute(
                "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
            ).fetchone()
        return number

    before = connections()
    with session.worker(spark, "lake", lake.environment()) as worker:
        worker.sql("create namespace if not exists lake.connections")
        during = connections()

    assert during > before
    wait_until(lambda: connections() <= before, "the backends have left")
    assert connections() == before


def test_the_landing_zones_store_is_known_to_hadoop_for_its_bucket_alone(spark):
    given = store.hadoop(
        "s3://zone/below", {"endpoint_override": "http://store:1", "secret_key_env": "KEY"}, {"KEY": "hidden"}
    )

    started = session.start("tests", {store.LANDING: json.dumps(given)})

    hadoop = started.sparkContext._jsc.hadoopConfiguration()
    assert hadoop.get("fs.s3a.bucket.zone.endpoint") == "http://store:1"
    assert hadoop.get("fs.s3a.bucket.zone.secret.key") == "hidden"
    assert hadoop.get("fs.s3a.secret.key") is None

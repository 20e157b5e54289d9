"""Sessions have what catalog, store and landing zone need, from the driver's environment."""

import json

import pytest

from penstock.landing import store
from penstock_spark import session

pytestmark = pytest.mark.spark

LOGIN = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "hidden"}


def test_the_stores_login_goes_to_the_tables_of_the_session_alone(spark):
    worker = session.worker(spark, "lake", LOGIN)

    assert worker.conf.get("spark.sql.catalog.lake.s3.access-key-id") == "key"
    assert worker.conf.get("spark.sql.catalog.lake.s3.secret-access-key") == "hidden"
    assert worker.conf.get("spark.sql.catalog.lake.s3.session-token", "none") == "none"
    assert spark.conf.get("spark.sql.catalog.lake.s3.secret-access-key", "none") == "none"


def test_without_a_login_in_the_environment_the_catalog_finds_its_own(spark):
    assert session.worker(spark, "lake", {}).conf.get("spark.sql.catalog.lake.s3.access-key-id", "none") == "none"


def test_the_landing_zones_store_is_known_to_hadoop_for_its_bucket_alone(spark):
    given = store.hadoop(
        "s3://zone/below", {"endpoint_override": "http://store:1", "secret_key_env": "KEY"}, {"KEY": "hidden"}
    )

    started = session.start("tests", {store.LANDING: json.dumps(given)})

    hadoop = started.sparkContext._jsc.hadoopConfiguration()
    assert hadoop.get("fs.s3a.bucket.zone.endpoint") == "http://store:1"
    assert hadoop.get("fs.s3a.bucket.zone.secret.key") == "hidden"
    assert hadoop.get("fs.s3a.secret.key") is None

"""A worker's session has what the catalog and its store need, from the driver's environment."""

import pytest

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

"""One place says where the landing zone's store is: for us, for tasks elsewhere, and for Spark."""

import pytest

from penstock.errors import ConfigError
from penstock.landing import store

OPTIONS = {"region": "eu-central-1", "access_key_env": "LANDING_KEY", "secret_key_env": "LANDING_SECRET"}
ENVIRONMENT = {"LANDING_KEY": "key", "LANDING_SECRET": "hidden"}


def test_options_from_the_environment_are_made_plain_for_who_has_another_environment() -> None:
    assert store.given(OPTIONS, ENVIRONMENT) == {
        "region": "eu-central-1",
        "access_key": "key",
        "secret_key": "hidden",
    }


def test_a_variable_that_is_not_there_is_named() -> None:
    with pytest.raises(ConfigError, match=r"landing.options.secret_key_env: the environment variable LANDING_SECRET"):
        store.given(OPTIONS, {"LANDING_KEY": "key"})


def test_spark_gets_the_same_address_and_login_for_this_bucket_alone() -> None:
    assert store.hadoop("s3://zone/prefix", OPTIONS, ENVIRONMENT) == {
        "fs.s3a.bucket.zone.endpoint.region": "eu-central-1",
        "fs.s3a.bucket.zone.access.key": "key",
        "fs.s3a.bucket.zone.secret.key": "hidden",
    }


@pytest.mark.parametrize(
    ("options", "endpoint", "path_style"),
    [
        ({"endpoint_override": "http://store:9878"}, "http://store:9878", "true"),
        ({"endpoint_override": "store:9878", "scheme": "http"}, "http://store:9878", "true"),
        ({"endpoint_override": "store:9878"}, "https://store:9878", "true"),
        ({"endpoint_override": "https://s", "force_virtual_addressing": "true"}, "https://s", None),
    ],
)
def test_a_store_of_ones_own_is_addressed_as_we_address_it(
    options: dict[str, str], endpoint: str, path_style: str | None
) -> None:
    found = store.hadoop("s3://zone", options, {})

    assert found["fs.s3a.bucket.zone.endpoint"] == endpoint
    assert found.get("fs.s3a.bucket.zone.path.style.access") == path_style


def test_a_folder_needs_no_settings() -> None:
    assert store.hadoop("/var/landing", {}, {}) == {}

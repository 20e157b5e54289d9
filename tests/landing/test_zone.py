"""A folder and a store behave alike; a store is any file system that is not a local folder."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from pyarrow import fs

from penstock.conditions import Directive
from penstock.contract.manifest import ChangeCounts
from penstock.errors import ConfigError, LakeError
from penstock.landing import store
from penstock.landing.zone import LandingZone
from tests.landing.samples import COLUMNS, inserts


@pytest.fixture(params=["folder", "store"])
def zone(request: pytest.FixtureRequest, tmp_path: Path) -> LandingZone:
    if request.param == "folder":
        return LandingZone.open(str(tmp_path), {})
    # what is no LocalFileSystem is treated as an object store: uploaded at the end, never renamed
    return LandingZone(fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem()), "bucket", "s3a://bucket")


@pytest.fixture
def dead_store(monkeypatch: pytest.MonkeyPatch) -> LandingZone:
    monkeypatch.setattr(store, "RETRIES", 1)
    options = {
        "endpoint_override": "127.0.0.1:1",
        "scheme": "http",
        "region": "nowhere",
        "access_key": "key",
        "secret_key_env": "SECRET",
        "connect_timeout": "0.2",
    }
    return LandingZone.open("s3://bucket/landing", options, {"SECRET": "hidden-secret"})


def test_text_is_written_replaced_and_read(zone: LandingZone, tmp_path: Path) -> None:
    (tmp_path / "bucket").mkdir(exist_ok=True)
    zone.write_text("plan.json", "one")
    zone.write_text("plan.json", "zwei ü")

    assert zone.read_text("plan.json") == "zwei ü"
    assert zone._require("plan.json").size == len("zwei ü".encode())
    assert zone.exists("plan.json")
    assert not zone.exists("other.json")


def test_a_landing_file_goes_both_ways(zone: LandingZone, tmp_path: Path) -> None:
    (tmp_path / "bucket").mkdir(exist_ok=True)
    writer = zone.writer("t.parquet", COLUMNS)
    writer.write(inserts(3))
    writer.groups.flush()
    assert not zone.exists("t.parquet")
    entry = writer.close(oid=1, version=1, counts=ChangeCounts(inserts=3))

    assert zone.read("t.parquet").num_rows == 3
    assert zone._require("t.parquet").size == entry.bytes


def test_an_aborted_file_never_appears(zone: LandingZone, tmp_path: Path) -> None:
    (tmp_path / "bucket").mkdir(exist_ok=True)
    writer = zone.writer("t.parquet", COLUMNS)
    writer.write(inserts(3))
    writer.groups.flush()
    writer.abort()

    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_files_are_listed_below_a_folder_and_deleted_with_it(tmp_path: Path) -> None:
    zone = LandingZone.open(str(tmp_path), {})
    for path in ("p/windows/w2/a/2.1.json", "p/windows/w1/a/1.1.json", "p/runs/r/plan.json"):
        zone.write_text(path, "")
    (tmp_path / "p/windows/w1/a/.3.1.json.12345678.part").touch()

    assert zone.list("p/windows") == ["p/windows/w1/a/1.1.json", "p/windows/w2/a/2.1.json"]
    assert zone.folders("p/windows") == ["p/windows/w1", "p/windows/w2"]
    zone.delete_folder("p/windows")
    zone.delete_folder("p/windows")
    assert zone.list("") == ["p/runs/r/plan.json"]
    assert zone.list("p/windows") == []


def test_the_whole_zone_is_never_deleted(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="got the whole zone"):
        LandingZone.open(str(tmp_path), {}).delete_folder("/")


def test_a_missing_text_is_a_missing_file(zone: LandingZone) -> None:
    with pytest.raises(LakeError, match="landing-file-missing"):
        zone.read_text("gone.json")


def test_a_folder_that_is_a_file_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "p").touch()

    with pytest.raises(LakeError, match=r"\[landing-unwritable\].*(Not a directory|File exists)"):
        LandingZone.open(str(tmp_path), {}).write_text("p/plan.json", "")


def test_a_zone_is_a_folder_a_file_uri_or_a_bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    spaced = tmp_path / "a b"

    assert LandingZone.open("landing", {}).uri("x") == f"file://{tmp_path}/landing/x"
    assert LandingZone.open(f"{tmp_path}/", {}).uri("x") == f"file://{tmp_path}/x"
    assert LandingZone.open(f"file://{tmp_path}/a%20b", {}).uri("x") == f"file://{spaced}/x"
    s3 = LandingZone.open("s3://bucket/some/prefix/", {"region": "eu-west-1", "access_key": "k", "secret_key": "s"})
    assert s3.uri("p/x") == "s3a://bucket/some/prefix/p/x"


@pytest.mark.parametrize(
    ("uri", "options", "message"),
    [
        ("ftp://host/x", {}, "expected the absolute path of a folder"),
        ("file://host/x", {}, "expected the absolute path of a folder"),
        ("s3:///prefix", {}, "expected s3://bucket/prefix"),
        ("/x", {"region": "eu"}, "a folder takes no options"),
        ("s3://b", {"endpoint": "x"}, "did you mean 'endpoint_override'"),
        ("s3://b", {"zzz": "x"}, "expected one of"),
        ("s3://b", {"secret_key_env": "ABSENT"}, "the environment variable ABSENT is not set"),
        ("s3://b", {"connect_timeout": "soon"}, "expected a number of seconds"),
        ("s3://b", {"force_virtual_addressing": "perhaps"}, "expected true or false"),
    ],
)
def test_a_wrong_zone_is_refused_by_name(uri: str, options: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match="config-invalid") as caught:
        LandingZone.open(uri, options, {})
    assert message in caught.value.message


def test_a_store_that_does_not_answer_is_worth_another_try(dead_store: LandingZone) -> None:
    writer = dead_store.writer("p/t.parquet", COLUMNS)
    writer.write(inserts(1))
    calls: list[Callable[[], object]] = [
        lambda: writer.close(oid=1, version=1, counts=ChangeCounts(inserts=1)),
        lambda: dead_store.read("p/t.parquet"),
    ]
    for call in calls:
        with pytest.raises(LakeError) as caught:
            call()
        assert caught.value.slug == "landing-unreachable"
        assert caught.value.directive is Directive.RETRY
        assert "hidden-secret" not in str(caught.value)
    writer.abort()
    assert "hidden-secret" not in repr(dead_store)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become somebody without rights")
def test_a_folder_without_rights_is_unreachable_not_missing(tmp_path: Path) -> None:
    zone = LandingZone.open(str(tmp_path), {})
    zone.write_text("closed/plan.json", "")
    (tmp_path / "closed").chmod(0o700)
    os.seteuid(65534)
    try:
        with pytest.raises(LakeError, match=r"\[landing-unreachable\].*Permission denied"):
            zone.read_text("closed/plan.json")
    finally:
        os.seteuid(0)

"""Absent, damaged, foreign and unreachable files are told apart."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.contract.manifest import ChangeCounts
from penstock.contract.schema import CONTRACT_KEY, landing_schema
from penstock.errors import LakeError
from penstock.landing.zone import LandingZone
from tests.landing.samples import COLUMNS, inserts


@pytest.fixture
def zone(tmp_path: Path) -> LandingZone:
    return LandingZone.open(str(tmp_path), {})


@pytest.fixture
def landed(zone: LandingZone, tmp_path: Path) -> Path:
    writer = zone.writer("t.parquet", COLUMNS)
    writer.write(inserts(1000, text="x" * 50))
    writer.close(oid=1, version=1, counts=ChangeCounts(inserts=1000))
    return tmp_path / "t.parquet"


def refused(zone: LandingZone) -> LakeError:
    with pytest.raises(LakeError) as caught:
        zone.read("t.parquet")
    return caught.value


def test_an_absent_file_is_missing(zone: LandingZone) -> None:
    error = refused(zone)

    assert error.slug == "landing-file-missing"
    assert "t.parquet" in error.message


def test_a_folder_in_place_of_a_file_is_missing(zone: LandingZone, tmp_path: Path) -> None:
    (tmp_path / "t.parquet").mkdir()

    assert refused(zone).slug == "landing-file-missing"


@pytest.mark.parametrize("kept", [0, 3, 100, 0.5, 0.99])
def test_a_truncated_file_is_refused(zone: LandingZone, landed: Path, kept: float) -> None:
    whole = landed.read_bytes()
    landed.write_bytes(whole[: int(kept if kept >= 1 else kept * len(whole))])

    assert refused(zone).slug == "landing-file-missing"


def test_a_file_with_damaged_pages_is_refused(zone: LandingZone, landed: Path) -> None:
    whole = bytearray(landed.read_bytes())
    whole[20:2000] = bytes(1980)
    landed.write_bytes(whole)

    assert refused(zone).slug == "landing-file-missing"


@pytest.mark.parametrize("version", [b"2", b"4", b"0", b"", b"1.0", None])
def test_another_contract_version_is_refused(zone: LandingZone, tmp_path: Path, version: bytes | None) -> None:
    metadata = None if version is None else {CONTRACT_KEY: version}
    schema = landing_schema(COLUMNS).with_metadata(metadata)
    pq.write_table(pa.Table.from_pylist([], schema), tmp_path / "t.parquet")

    error = refused(zone)
    assert error.slug == "landing-version"
    assert "expected landing contract version 1 or 3" in error.message


def test_the_version_is_in_the_files_own_metadata_for_readers_without_arrow(landed: Path) -> None:
    assert pq.read_metadata(landed).metadata[CONTRACT_KEY] == b"1"

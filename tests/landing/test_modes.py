"""What the landing zone makes in a folder is for our account alone: it holds the database's rows."""

import os
import stat
from pathlib import Path

import pytest

from penstock.errors import ConfigError
from penstock.landing.zone import LandingZone


def test_folders_and_files_are_for_their_owner_alone_whatever_the_umask(tmp_path: Path) -> None:
    zone = LandingZone.open(str(tmp_path / "deep" / "landing"), {}, {})
    before = os.umask(0)
    try:
        zone.write_text("p/runs/1/plan.json", "{}")
        copy = zone.copy_writer("p/copies/1/1.parquet", ["a"], {})
        copy.close(oid=1)
    finally:
        os.umask(before)

    made = list((tmp_path / "deep").rglob("*"))
    assert any(path.is_file() for path in made)
    for path in (tmp_path / "deep", *made):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


@pytest.mark.parametrize("uri", ["", "  "])
def test_no_address_at_all_does_not_mean_the_present_folder(uri: str) -> None:
    with pytest.raises(ConfigError, match=r"config-invalid.*landing\.uri.*got nothing"):
        LandingZone.open(uri, {}, {})

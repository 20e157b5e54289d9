"""A lake of folders for the engine's tests."""

from pathlib import Path

import pytest

from tests.engine.folder_lake import FolderLake


@pytest.fixture
def folder_lake(tmp_path: Path) -> FolderLake:
    return FolderLake(tmp_path)

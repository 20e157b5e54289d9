"""A lake of folders for the engine's tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engine.folder_lake import FolderLake
from tests.values.conftest import source, source16

__all__ = ["folder_lake", "source", "source16"]


@pytest.fixture
def folder_lake(tmp_path: Path) -> FolderLake:
    return FolderLake(tmp_path)

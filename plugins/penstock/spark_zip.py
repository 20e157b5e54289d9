"""The library and the modules of the Spark applications as one zip, for Spark's Python processes (`--py-files`).

The same sources give the same bytes. Links are followed, so the constant SQL travels in the library's own folder, where
`penstock.sql` looks for it. The zip is replaced in one step, so that a job that starts meanwhile reads a whole one.
"""

from __future__ import annotations

import os
import secrets
import zipfile
from collections.abc import Iterator, Mapping
from io import BytesIO
from pathlib import Path

EPOCH = (1980, 1, 1, 0, 0, 0)
PACKAGES = ("plugins/penstock", "spark_apps/penstock_spark")


def location(home: Path, environment: Mapping[str, str]) -> Path:
    """Return where the zip lies that Spark receives."""
    return Path(environment.get("PENSTOCK_ZIP", str(home / ".local" / "penstock.zip")))


def build(root: Path, target: Path) -> bool:
    """Write the zip of the project folder `root` to `target` if it differs; return whether it did."""
    wanted = _zip(root)
    if target.exists() and target.read_bytes() == wanted:
        return False
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        with draft.open("xb") as file:
            file.write(wanted)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)
    return True


def _zip(root: Path) -> bytes:
    whole = BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in sorted(_entries(root)):
            entry = zipfile.ZipInfo(name, EPOCH)
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, content, zipfile.ZIP_DEFLATED)
    return whole.getvalue()


def _entries(root: Path) -> Iterator[tuple[str, bytes]]:
    for package in PACKAGES:
        for folder, _, names in os.walk(root / package, followlinks=True):
            for path in (Path(folder, name) for name in names):
                if "__pycache__" not in path.parts:
                    yield str(path.relative_to((root / package).parent)), path.read_bytes()

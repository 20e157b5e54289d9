"""The system account that PostgreSQL runs under: ourselves, or `nobody` for root (PostgreSQL refuses root).

`nobody` can't enter a folder below, say, a 0700 home. What it must reach is then put into a shelter of ours
below the system's persistent temporary folder.
"""

import hashlib
import os
import pwd
import shutil
import stat
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stack.errors import StackError

PERSISTENT_TEMPORARY = Path("/var/tmp")  # noqa: S108  # survives a reboot; what we make there is checked below


@dataclass(frozen=True)
class Account:
    """A user and group id to run PostgreSQL's programs under, and their environment; None means the current user, and ours."""

    uid: int | None = None
    gid: int | None = None
    env: Mapping[str, str] | None = None

    @classmethod
    def for_postgres(cls, env: Mapping[str, str] | None = None) -> "Account":
        """Choose the account: the current user, or `nobody` for root."""
        if os.geteuid() != 0:
            return cls(env=env)
        nobody = pwd.getpwnam("nobody")
        return cls(nobody.pw_uid, nobody.pw_gid, env)

    def run(self, command: Sequence[str | Path], **options: Any) -> subprocess.CompletedProcess[str]:
        """Run a program under this account, from `/`, without standard input, and return what it said."""
        defaults: dict[str, Any] = {"capture_output": True, "cwd": "/", "stdin": subprocess.DEVNULL, "env": self.env}
        if self.uid is not None:
            defaults |= {"user": self.uid, "group": self.gid, "extra_groups": []}
        parts = [str(part) for part in command]
        return subprocess.run(parts, text=True, check=False, **(defaults | options))

    def own(self, path: Path) -> None:
        """Give a file or folder to this account."""
        if self.uid is not None and self.gid is not None:
            os.chown(path, self.uid, self.gid)

    def can_enter(self, folder: Path) -> bool:
        """Return whether this account can reach an existing folder."""
        if self.uid is None:
            return True
        return self.run(["test", "-x", folder]).returncode == 0


def reachable_folder(preferred: Path, account: Account) -> Path:
    """Make `preferred`, or a shelter that stands for it where the account can't get there, and return it."""
    preferred.mkdir(parents=True, exist_ok=True)
    if account.can_enter(preferred):
        return preferred
    return _shelter(preferred)


def shelter_of(preferred: Path) -> Path:
    """Name the folder that stands in for `preferred` where `nobody` can't reach it."""
    digest = hashlib.sha256(str(preferred.resolve()).encode()).hexdigest()[:12]
    return PERSISTENT_TEMPORARY / f"penstock-{digest}"


def _shelter(preferred: Path) -> Path:
    shelter = shelter_of(preferred)
    shelter.mkdir(mode=0o711, exist_ok=True)
    found = shelter.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise StackError(
            f"{shelter} to be a folder of ours (others can't reach {preferred})",
            "something there belongs to another user",
            f"remove {shelter}, or move the project to a folder that every user can enter",
        )
    shelter.chmod(0o711)
    return shelter


def copy_tree_once(source: Path, target: Path) -> None:
    """Copy a folder to `target` unless it is there; a copy cut short is never taken for a whole one."""
    if target.exists():
        return
    draft = target.with_name(f"{target.name}.part")
    shutil.rmtree(draft, ignore_errors=True)
    shutil.copytree(source, draft, symlinks=True)
    draft.rename(target)

"""Small files that must never be half-written, and files that only their owner may read."""

import os
import secrets
from pathlib import Path

OWNER_ONLY = 0o600


def write_whole(path: Path, content: str | bytes, *, mode: int = 0o644) -> None:
    """Replace `path` by `content` in one step, so that a reader sees the old file or the new one.

    The permission bits are set on creation: there is no moment at which a secret is readable by others.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read (0600)."""
    write_whole(path, text, mode=OWNER_ONLY)


def tail(path: Path, lines: int = 20) -> str:
    """Return the last lines of a log, or the empty string where there is none."""
    if not path.exists():
        return ""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 64 * 1024))
        return "\n".join(file.read().decode("utf-8", "replace").splitlines()[-lines:])

"""A program left running in the background, in a session of its own, and found again by later commands.

A process number alone is no proof (it may be another process after a reboot), so the record also holds when that
process and this boot began. Whatever the program starts stays in its session, which is how it is stopped: whole.
"""

import json
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from penstock.polling import poll
from stack.atomic_write import write_private
from stack.paths import Project

# The program waits for the word: if we die before the record is written, it ends instead of running unknown.
WAIT_FOR_THE_WORD = 'read -r word && [ "$word" = go ] && exec "$@" </dev/null'
GROUP_SECONDS = 6.0
SESSION_SECONDS = 5.0
BOOT = Path("/proc/sys/kernel/random/boot_id")
CLOCK_SECONDS = 2.0
"""How far two readings of the same beginning may lie apart: the clock may be set between them."""


@dataclass(frozen=True)
class _Record:
    pid: int
    began: float
    """Seconds from the boot to the program's start; no setting of the clock changes them."""
    boot: str
    fingerprint: str


@dataclass(frozen=True)
class Session:
    """One background program: `record` remembers it between commands, `log` takes what it says."""

    record: Path
    log: Path

    @classmethod
    def of(cls, project: Project, name: str) -> "Session":
        """Return the session of this name in a project's stack; `stack.sessions` finds it by its record."""
        return cls(project.sessions / f"{name}.json", project.logs / f"{name}.log")

    @property
    def name(self) -> str:
        """Return the program's name."""
        return self.record.stem

    def start(
        self, command: Sequence[str | Path], *, environ: Mapping[str, str], cwd: Path, fingerprint: str = ""
    ) -> None:
        """Start the program unless it runs; `fingerprint` says later with which settings that was."""
        if self.is_alive():
            return
        self.log.parent.mkdir(parents=True, exist_ok=True)
        listening, speaking = os.pipe()
        try:
            with self.log.open("a") as sink:
                leader = subprocess.Popen(
                    ["sh", "-c", WAIT_FOR_THE_WORD, self.name, *map(str, command)],
                    stdin=listening,
                    stdout=sink,
                    stderr=sink,
                    env=dict(environ),
                    cwd=cwd,
                    start_new_session=True,
                )
            record = _Record(leader.pid, _began(leader.pid) or 0.0, _this_boot(), fingerprint)
            write_private(self.record, json.dumps(asdict(record)) + "\n")
            os.write(speaking, b"go\n")
        finally:
            os.close(listening)
            os.close(speaking)

    def is_alive(self, fingerprint: str | None = None) -> bool:
        """Return whether the program itself runs (and, if asked, with these settings)."""
        record = self._read()
        if record is None or fingerprint not in (None, record.fingerprint):
            return False
        return _is_same(_began(record.pid), record)

    def members(self) -> list[int]:
        """List the processes of the session, whatever groups they made for themselves."""
        record = self._read()
        if record is None:
            return []
        began = _began(record.pid)
        if began is not None and not _is_same(began, record):
            return []  # the number is another process by now
        return [pid for pid in psutil.pids() if _session_of(pid) == record.pid and _began(pid) is not None]

    def stop(self) -> None:
        """End the program and everything that it started: asked first, killed in the end."""
        record = self._read()
        if record is not None and self.members():
            with suppress(ProcessLookupError):
                os.killpg(record.pid, signal.SIGTERM)
            self._wait_for_the_end(GROUP_SECONDS)
            for which in (signal.SIGTERM, signal.SIGKILL):
                self._signal_all(which)
                self._wait_for_the_end(SESSION_SECONDS)
        self.record.unlink(missing_ok=True)

    def _signal_all(self, which: signal.Signals) -> None:
        for pid in self.members():
            with suppress(ProcessLookupError):
                os.kill(pid, which)

    def _wait_for_the_end(self, seconds: float) -> None:
        for _ in poll(seconds, pause=0.1):
            if not self.members():
                return

    def _read(self) -> _Record | None:
        """Return what is recorded of this boot; an earlier boot left no process."""
        with suppress(OSError, ValueError, TypeError):
            record = _Record(**json.loads(self.record.read_text()))
            return record if record.boot == _this_boot() else None
        return None


def _this_boot() -> str:
    return BOOT.read_text().strip()


def _began(pid: int) -> float | None:
    """Return how long after the boot a living process (a zombie is none) began."""
    with suppress(psutil.Error):
        process = psutil.Process(pid)
        if process.status() != psutil.STATUS_ZOMBIE:
            return float(process.create_time() - psutil.boot_time())
    return None


def _is_same(began: float | None, record: _Record) -> bool:
    return began is not None and abs(began - record.began) < CLOCK_SECONDS


def _session_of(pid: int) -> int | None:
    with suppress(OSError):
        return os.getsid(pid)
    return None

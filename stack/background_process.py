"""A program left running in the background, in a session of its own, and found again by later commands.

A process number alone is no proof (it may be another process after a reboot), so the record also holds when that
process and this boot began. Whatever the program starts stays in its session, which is how it is stopped: whole.
"""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from stack.atomic_write import write_private

# The program waits for the word: if we die before the record is written, it ends instead of running unknown.
WAIT_FOR_THE_WORD = 'read -r word && [ "$word" = go ] && exec "$@" </dev/null'
GROUP_SECONDS = 6.0
SESSION_SECONDS = 5.0
BOOT = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True)
class _Process:
    pid: int
    state: str
    session: int
    began: int
    """Clock ticks since the boot."""


@dataclass(frozen=True)
class _Record:
    pid: int
    began: int
    boot: str
    fingerprint: str


@dataclass(frozen=True)
class Session:
    """One background program: `record` remembers it between commands, `log` takes what it says."""

    record: Path
    log: Path

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
            began = next((each.began for each in _processes([leader.pid])), 0)
            record = _Record(leader.pid, began, _this_boot(), fingerprint)
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
        return any(each.began == record.began for each in _processes([record.pid]))

    def members(self) -> list[int]:
        """List the processes of the session, whatever groups they made for themselves."""
        record = self._read()
        if record is None or any(each.began != record.began for each in _processes([record.pid])):
            return []  # none, or the number is another process by now
        return [each.pid for each in _processes() if each.session == record.pid]

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
        deadline = time.monotonic() + seconds
        while self.members() and time.monotonic() < deadline:
            time.sleep(0.1)

    def _read(self) -> _Record | None:
        """Return what is recorded of this boot; an earlier boot left no process."""
        with suppress(OSError, ValueError, TypeError):
            record = _Record(**json.loads(self.record.read_text()))
            return record if record.boot == _this_boot() else None
        return None


def _this_boot() -> str:
    return BOOT.read_text().strip()


def _processes(pids: Sequence[int] | None = None) -> Iterator[_Process]:
    """Yield the living processes (zombies are not), of all or of these numbers."""
    if pids is None:
        pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    for pid in pids:
        with suppress(OSError):
            # proc(5): the fields after the name in parentheses, which may itself hold anything
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            if fields[0] not in "ZX":
                yield _Process(pid, fields[0], session=int(fields[3]), began=int(fields[19]))

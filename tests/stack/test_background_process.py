"""Background programs are found again, stopped whole, and never confused with another owner's process."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from stack.background_process import Session
from tests.waiting import wait_until

# A program whose child leaves the process group, as Airflow's tasks do, and does not listen to SIGTERM.
STUBBORN = """
import os, signal, subprocess, sys, time
subprocess.Popen([sys.executable, "-c",
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(600)"],
    process_group=0)
time.sleep(600)
"""


@pytest.fixture
def session(tmp_path: Path, monkeypatch) -> Iterator[Session]:
    monkeypatch.setattr("stack.background_process.GROUP_SECONDS", 1.0)
    monkeypatch.setattr("stack.background_process.SESSION_SECONDS", 1.0)
    session = Session(tmp_path / "sleeper.json", tmp_path / "sleeper.log")
    yield session
    session.stop()


def start(session: Session, program: str = "import time; time.sleep(600)", fingerprint: str = "") -> None:
    command = [sys.executable, "-c", program]
    session.start(command, environ=os.environ, cwd=session.record.parent, fingerprint=fingerprint)


def test_a_program_runs_in_a_session_of_its_own_until_it_is_stopped(session: Session):
    start(session)
    (pid,) = session.members()

    assert session.is_alive()
    assert os.getsid(pid) == pid != os.getsid(0)
    session.stop()
    assert not session.is_alive()
    assert not session.record.exists()


def test_starting_it_twice_starts_it_once(session: Session):
    start(session)
    members = session.members()

    start(session)

    assert session.members() == members


def test_another_command_finds_it_by_its_record(session: Session):
    start(session, fingerprint="settings 1")
    found = Session(session.record, session.log)

    assert found.members() == session.members()
    assert found.is_alive("settings 1")
    assert not found.is_alive("settings 2")


def test_a_child_in_a_group_of_its_own_that_is_deaf_to_sigterm_is_stopped_too(session: Session):
    start(session, STUBBORN)
    wait_until(lambda: "deaf" in session.log.read_text())
    members = session.members()
    assert len({os.getpgid(pid) for pid in members}) == len(members) == 2

    session.stop()

    assert [pid for pid in members if Path(f"/proc/{pid}/cwd").exists()] == []


def test_children_are_found_after_their_leader_was_killed(session: Session):
    start(session, STUBBORN)
    wait_until(lambda: "deaf" in session.log.read_text())
    leader = json.loads(session.record.read_text())["pid"]
    os.kill(leader, 9)
    wait_until(lambda: not session.is_alive())

    assert len(session.members()) == 1
    session.stop()
    assert session.members() == []


@pytest.mark.parametrize("field", ["began", "boot"])
def test_a_process_that_got_the_number_later_is_left_alone(session: Session, field: str):
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as somebody_else:
        start(session)
        record = json.loads(session.record.read_text())
        session.stop()
        began = int(Path(f"/proc/{somebody_else.pid}/stat").read_text().rpartition(")")[2].split()[19])
        stale = record | {"pid": somebody_else.pid, "began": began} | {field: 1 if field == "began" else "earlier"}
        session.record.write_text(json.dumps(stale))

        assert not session.is_alive()
        session.stop()

        assert somebody_else.poll() is None
        somebody_else.kill()


def test_a_program_whose_starter_died_before_the_record_was_written_does_not_run(session: Session, monkeypatch):
    ran = session.record.parent / "ran"

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("stack.background_process.write_private", die)
    with pytest.raises(KeyboardInterrupt):
        start(session, f"open({str(ran)!r}, 'w')")

    time.sleep(0.5)
    assert not ran.exists()
    assert not session.record.exists()


def test_an_illegible_record_counts_as_none(session: Session):
    session.record.write_text("{half")

    assert not session.is_alive()
    assert session.members() == []

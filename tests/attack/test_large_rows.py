"""Rows of many megabytes: capture has one of them in memory at a time, however many a window holds."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pipeline_env import PipelineEnv
from tests.scenarios.members import begin

MIB = 64
ROW = f"insert into t values (%d, (select string_agg(md5(n::text), '') from generate_series(1, {MIB << 15}) n))"
# what a capture peeks and lands, in a process of its own: VmHWM is its peak alone
LAND = """
import sys
from pathlib import Path
from penstock.config.connections import Connection
from penstock.flow.capture.window import land
from penstock.landing.zone import LandingZone
from penstock.lsn import Lsn
from penstock.source import peek
from penstock.wire.columnar import ColumnarDecoder

port, database, slot, publication, upto, folder = sys.argv[1:]
source = Connection("source", "127.0.0.1", int(port), "postgres", sys.stdin.read(), database)
messages = peek.peek(
    source, slot=slot, publication=publication, upto=Lsn(int(upto)), statement_timeout=600, work_mem=256 << 20,
    batch_bytes=4 << 20)
zone = LandingZone.open(folder, {})
landed = land(messages, ColumnarDecoder(xid_horizon=1 << 40), zone, "window", lambda *_: 1)
(peak,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
print(sum(file.rows for file in landed.files), int(peak.split()[1]) >> 10)
"""


def landed(env: PipelineEnv, folder: Path) -> tuple[int, int]:
    """Land all that the slot has; return the rows, and the process's peak of memory in MiB."""
    env.flush()
    ((upto,),) = env.sql("select pg_current_wal_flush_lsn() - '0/0'")
    pipeline, server = env.ctx.pipeline, env.source.server
    place = [str(server.port), env.source.name, pipeline.slot, pipeline.publication, str(int(upto)), str(folder)]
    command = [sys.executable, "-c", LAND, *place]
    done = subprocess.run(
        command, input=server.password, capture_output=True, text=True, check=True, env=dict(os.environ)
    )
    rows, peak = done.stdout.split()
    return int(rows), int(peak)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_five_large_rows_take_no_more_memory_than_one(env16: PipelineEnv, tmp_path: Path) -> None:
    begin(env16, "create table t (id int primary key, body text); alter table t alter body set storage external")
    env16.sql(ROW % 1)
    rows, one = landed(env16, tmp_path / "one")
    for number in range(2, 6):
        env16.sql(ROW % number)

    more, five = landed(env16, tmp_path / "five")

    assert (rows, more) == (1, 5)
    assert one > 2 * MIB, "the row was in memory at all"
    assert five < one + MIB, f"five rows took {five} MiB, one took {one}"

"""Capture against the server's own limit: how fast a window is landed, and how much memory that takes.

The limit is what the server needs to answer `select count(*)` over the very same peek. Both are run in turn, five
times, and the medians are compared. Two cores set another limit: the CPU seconds of server and client, divided by two. Memory
is the peak of a process of its own that captures once. A backlog is captured by the product itself, with and without reading ahead.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench import cpu, load
from bench.figures import Figure
from bench.many_tables import many_tables
from bench.servers import Address, RunningServer, source_connection, source_server
from penstock.config.model import Capture
from penstock.flow.capture.window import land
from penstock.flow.schema.evidence import Landed
from penstock.landing.zone import LandingZone
from penstock.lsn import Lsn
from penstock.source import peek, session
from penstock.wire.columnar import ColumnarDecoder, warm_up
from stack.servers.postgres import Server

CHANGES = 1_000_000
HUGE = 5_000_000
RUNS = 5
WORK_MEM = 512 << 20
BATCH_BYTES = 4 << 20


def measure() -> list[Figure]:
    """Return `capture_vs_server` and the limit of two cores, what reading ahead brings, and memory."""
    warm_up()
    with source_server() as server:
        upto = _prepare(server, CHANGES, one_transaction=False)
        runs = [(_count_seconds(server, upto), *_land_seconds(server, upto)) for _ in range(RUNS)]
        limit, ours, cores = (statistics.median(column) for column in zip(*runs, strict=True))
        rss = _rss(server, upto)
        huge = _prepare(server, HUGE, one_transaction=True)
        rss_huge = _rss(server, huge)
    return [
        Figure("capture_vs_server", CHANGES / ours, "changes/s", limit / ours),
        Figure("capture_limit_of_two_cores", CHANGES / cores, "changes/s", limit / cores),
        *_backlog(),
        Figure("capture_rss_mib", rss, "MiB"),
        Figure("capture_rss_huge_mib", rss_huge, "MiB"),
    ]


def _prepare(server: Server, changes: int, *, one_transaction: bool) -> Lsn:
    with server.connect() as conn:
        conn.execute("select pg_drop_replication_slot(slot_name) from pg_replication_slots")
        load.create(conn)
        load.slot(conn, "bench")
        load.change(conn, changes, one_transaction=one_transaction)
        row = conn.execute("select pg_current_wal_flush_lsn()::text").fetchone()
    assert row is not None
    return Lsn.parse(row[0])


def _count_seconds(server: Server, upto: Lsn) -> float:
    with session.connect(source_connection(server), what="bench", statement_timeout=600) as conn:
        conn.execute("select set_config('work_mem', %s, false)", (f"{WORK_MEM >> 10}kB",))
        conn.execute("select set_config('logical_decoding_work_mem', %s, false)", (f"{WORK_MEM >> 10}kB",))
        started = time.perf_counter()
        conn.execute(
            "select count(*) from pg_logical_slot_peek_binary_changes('bench', %s::pg_lsn, null, "
            "'proto_version', '1', 'publication_names', 'bench', 'messages', 'true')",
            (str(upto),),
        )
        return time.perf_counter() - started


def _land_seconds(server: Server, upto: Lsn) -> tuple[float, float]:
    """Return the seconds of a capture, and half of the CPU seconds of both sides: what two cores need at least."""
    landed: list[Landed] = []
    with tempfile.TemporaryDirectory() as folder:
        seconds, *used = cpu.spent(
            lambda: landed.append(land_once(server, upto, Path(folder))), os.getpid(), server.pid() or 0
        )
    assert sum(entry.rows for entry in landed[0].files) == CHANGES
    return seconds, sum(used) / 2


def _backlog() -> list[Figure]:
    """Return how fast the windows of a backlog are captured while the next one is read ahead; the ratio is to in turn."""
    seconds: dict[bool, list[float]] = {True: [], False: []}
    with many_tables(1) as env:
        with env.source.connect() as conn:
            conn.autocommit = True
            conn.execute("set search_path to many")
            load.create(conn)
        env.settings["source"] = {"publication": env.ctx.pipeline.publication}
        env.capture()
        for ahead in (True, False) * 3:
            env.settings["capture"] = {"work_mem": WORK_MEM, "read_ahead": ahead}
            with env.source.connect() as conn:
                conn.autocommit = True
                conn.execute("set search_path to many")
                conn.execute("truncate bench")
                load.change(conn, CHANGES)
                conn.execute("checkpoint")
            started = time.perf_counter()
            assert env.capture().changes >= CHANGES
            seconds[ahead].append(time.perf_counter() - started)
    overlapped, in_turn = (statistics.median(seconds[each]) for each in (True, False))
    return [Figure("capture_backlog", CHANGES / overlapped, "changes/s", in_turn / overlapped)]


def land_once(server: Address, upto: Lsn, folder: Path) -> Landed:
    """Peek, decode and write one window as capture does; the slot does not move."""
    limits = Capture(statement_timeout=600, work_mem=WORK_MEM, batch_bytes=BATCH_BYTES)
    messages = peek.peek(source_connection(server), peek.Request("bench", "bench", upto), limits)
    decoder = ColumnarDecoder(xid_horizon=1 << 40)
    return land(messages, decoder, LandingZone.open(str(folder), {}), "bench/window", lambda *_: 1)


def _rss(server: Server, upto: Lsn) -> float:
    """Return the peak resident memory, in MiB, of a process that captures the window once."""
    environment = {**os.environ, "BENCH_PORT": str(server.port), "BENCH_PASSWORD": server.password}
    command = [sys.executable, "-m", "bench.capture", str(int(upto))]
    said = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return float(json.loads(said.stdout.splitlines()[-1])["rss_mib"])


def main() -> None:
    """Capture once and print the process's own peak memory."""
    server = RunningServer(int(os.environ["BENCH_PORT"]), os.environ["BENCH_PASSWORD"])
    with tempfile.TemporaryDirectory() as folder:
        land_once(server, Lsn(int(sys.argv[1])), Path(folder))
    # not getrusage: its maximum remembers the process that forked us
    peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    print(json.dumps({"rss_mib": int(peak.split()[1]) / 1024}))


if __name__ == "__main__":
    main()

"""The live load: several writers and pgbench at once, each at a bounded rate, until it is stopped.

`python -m demo.workload --report FILE` reads the server's address from libpq's environment variables. On SIGTERM or
SIGINT every writer finishes its transaction, the totals are written to FILE, and the exit status is 0.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import psycopg
from psycopg import errors
from psycopg.conninfo import make_conninfo

from demo import transactions
from stack.atomic_write import write_whole

WRITERS = 4
WRITER_RATE = 12.0
PGBENCH_RATE = 40.0
SEED = 7
PGBENCH_CLIENTS = 2
PGBENCH_SECONDS = 3
"""pgbench runs in slices of this length, so that it ends by itself, between transactions, soon after it is stopped."""

# What writers in each other's way must expect; the transaction is rolled back and the next one is another.
REFUSALS = (
    errors.DeadlockDetected,
    errors.ForeignKeyViolation,
    errors.LockNotAvailable,
    errors.NotNullViolation,
    errors.SerializationFailure,
    errors.UniqueViolation,
)
# libpq's environment variables, and the words for them in a connection string
ADDRESS = {"PGHOST": "host", "PGPORT": "port", "PGUSER": "user", "PGPASSWORD": "password", "PGDATABASE": "dbname"}
REPORT_SECONDS = 0.5
SESSION = "-c lock_timeout=2s"


class Pace:
    """Lets its caller continue at most `rate` times a second; time that was lost is not caught up with."""

    def __init__(self, rate: float, stopping: threading.Event) -> None:
        self._interval = 1 / rate
        self._stopping = stopping
        self._due = time.monotonic()

    def __iter__(self) -> Iterator[None]:
        while not self._stopping.wait(max(0.0, self._due - time.monotonic())):
            yield
            self._due = max(self._due + self._interval, time.monotonic() - 1)


@dataclass
class Totals:
    """What a load has done so far: transactions by name, refused ones by the server's reason, seconds."""

    committed: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    @property
    def transactions(self) -> int:
        """Return how many transactions were committed."""
        return self.committed.total()

    def write(self, path: Path) -> None:
        """Replace the file by these totals."""
        write_whole(path, json.dumps(vars(self), indent=2) + "\n")

    @classmethod
    def read(cls, path: Path) -> "Totals":
        """Return what a load wrote last; nothing when it has not written yet."""
        if not path.exists():
            return cls()
        args = json.loads(path.read_text())
        return cls(Counter(args["committed"]), Counter(args["refused"]), args["seconds"])


class Workload:
    """A load that runs in threads of this process; `stop` ends it between transactions.

    `address` holds libpq's environment variables (PGHOST, ...), `pgbench` the program, None for none.
    """

    def __init__(
        self,
        address: Mapping[str, str],
        *,
        writers: int = WRITERS,
        rate: float = WRITER_RATE,
        seed: int = SEED,
        pgbench: Path | None = None,
        pgbench_rate: float = PGBENCH_RATE,
    ) -> None:
        self._totals = Totals()
        self._began = time.monotonic()
        self._address = address
        self._rate = rate
        self._seed = seed
        self._pgbench_rate = pgbench_rate
        self._stopping = threading.Event()
        self._counting = threading.Lock()
        self._failure: BaseException | None = None
        self._threads = [self._thread(self._write, number) for number in range(writers)]
        if pgbench is not None:
            self._threads.append(self._thread(self._run_pgbench, pgbench))

    def start(self) -> None:
        """Start all writers."""
        self._began = time.monotonic()
        for thread in self._threads:
            thread.start()

    def stop(self) -> Totals:
        """Let every writer finish its transaction, and return the totals; raises what a writer failed with."""
        self._stopping.set()
        for thread in self._threads:
            thread.join()
        if self._failure is not None:
            raise self._failure
        return self.so_far()

    def so_far(self) -> Totals:
        """Return the totals of this moment."""
        with self._counting:
            seconds = round(time.monotonic() - self._began, 1)
            return Totals(Counter(self._totals.committed), Counter(self._totals.refused), seconds)

    def wait(self, seconds: float) -> bool:
        """Wait for so long; return whether the load still runs, that is, no writer has failed."""
        return not self._stopping.wait(seconds)

    def _thread(self, work: Callable[..., None], *arguments: object) -> threading.Thread:
        def guarded() -> None:
            try:
                work(*arguments)
            except BaseException as error:  # raised again by `stop`; one failed writer ends the load
                self._failure = error
                self._stopping.set()

        return threading.Thread(target=guarded)

    def _count(self, counter: Counter[str], name: str, number: int = 1) -> None:
        with self._counting:
            counter[name] += number

    def _write(self, number: int) -> None:
        names, weights = list(transactions.MIX), list(transactions.MIX.values())
        conninfo = make_conninfo(**{ADDRESS[name]: value for name, value in self._address.items()})
        with psycopg.connect(conninfo, autocommit=True, options=SESSION) as connection:
            # A load that continues where another one stood makes other choices; from the beginning they are the same.
            stand = connection.execute("select last_value from shop.orders_id_seq").fetchone()
            dice = Random(f"{self._seed}/{number}/{stand}")
            connection.execute("select setseed(%s)", (dice.random(),))
            for _ in Pace(self._rate, self._stopping):
                (work,) = dice.choices(names, weights)
                try:
                    with connection.transaction():
                        work(connection, dice)
                except REFUSALS as error:
                    self._count(self._totals.refused, type(error).__name__)
                else:
                    self._count(self._totals.committed, work.__name__)

    def _run_pgbench(self, program: Path) -> None:
        emptied_first: list[str] = []  # by default pgbench begins with TRUNCATE of its history: once is right for us
        seeds = Random(f"{self._seed}/pgbench")
        while not self._stopping.is_set():
            said = subprocess.run(
                [
                    *(program, "-R", str(self._pgbench_rate), "-c", str(PGBENCH_CLIENTS), "-T", str(PGBENCH_SECONDS)),
                    *("--random-seed", str(seeds.getrandbits(31)), *emptied_first),
                ],
                env=os.environ | self._address,  # no command line shows a password
                capture_output=True,
                text=True,
                check=False,
                process_group=0,  # a signal for our group is for us to answer
            )
            done = re.search(r"transactions actually processed: (\d+)", said.stdout)
            if said.returncode != 0 or done is None:
                raise RuntimeError(
                    f"expected pgbench to run for {PGBENCH_SECONDS} s, but it said: {said.stderr.strip()}"
                )
            self._count(self._totals.committed, "pgbench", int(done[1]))
            emptied_first = ["-n"]


def main() -> int:
    """Run the load until a signal or a failure ends it."""
    parser = argparse.ArgumentParser(prog="python -m demo.workload", description=__doc__)
    parser.add_argument("--report", type=Path, required=True, help="file for the totals, in JSON, every second")
    parser.add_argument("--pgbench", type=Path, help="the program; without it only the shop is busy")
    parser.add_argument("--writers", type=int, default=WRITERS)
    parser.add_argument("--rate", type=float, default=WRITER_RATE, help="transactions per second and writer")
    parser.add_argument("--pgbench-rate", type=float, default=PGBENCH_RATE, help="transactions per second")
    parser.add_argument("--seed", type=int, default=SEED)
    args = vars(parser.parse_args())
    report = args.pop("report")
    stopped = threading.Event()
    for which in (signal.SIGTERM, signal.SIGINT):
        signal.signal(which, lambda *_: stopped.set())
    load = Workload({name: os.environ[name] for name in ADDRESS}, **args)
    load.start()
    try:
        while load.wait(REPORT_SECONDS) and not stopped.is_set():
            load.so_far().write(report)
    finally:
        load.stop().write(report)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

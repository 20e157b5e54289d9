"""One PostgreSQL server of our own: a data folder, a loopback port, a password, and what drives it.

`start` is the answer to every past: a folder never initialised, or half initialised, a server that already
runs, one that was killed, a pid file left by a reboot. Tests use the same class to stop one the hard way.
"""

import os
import shutil
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import psutil
import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from penstock.polling import poll
from stack import ports
from stack.atomic_write import tail, write_private
from stack.errors import StackError
from stack.servers.binaries import Binaries
from stack.servers.postgres_user import Account

SUPERUSER = "postgres"
SETTINGS = {
    "unix_socket_directories": "",
    "wal_level": "logical",
    "max_replication_slots": "20",
    "max_wal_senders": "20",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_line_prefix": "%m [%p] %d ",
}
OUR_SETTINGS_FILE = "penstock.conf"
START_SECONDS = 3600  # of crash recovery on a slow machine; a server that has ended is seen at once
LINGERING_SECONDS = 15  # children of a killed postmaster hold its shared memory for a moment
LINGERING_SIGN = "pre-existing shared memory block"
WRONG_PASSWORD_SIGN = "password authentication failed"  # noqa: S105
PORT_TAKEN_SIGN = "Address already in use"

StopMode = Literal["smart", "fast", "immediate"]


@dataclass
class Server:
    """A server whose files live in `home` (data folder, log, and nothing else), listening on 127.0.0.1 only.

    `settings` are added to `SETTINGS`; change them and `restart` to see them at work. With `host` a folder it listens on
    a socket there, for the account that runs it and for root, and on no address.
    """

    home: Path
    binaries: Binaries
    port: int
    password: str = field(repr=False)
    settings: Mapping[str, str] = field(default_factory=dict)
    account: Account = field(default_factory=Account.for_postgres)
    host: str = ports.LOOPBACK

    @property
    def data(self) -> Path:
        """Return the data folder."""
        return self.home / "data"

    @property
    def log(self) -> Path:
        """Return the server's log file."""
        return self.home / "server.log"

    @property
    def version(self) -> str:
        """Return the server's version, such as `16.14`."""
        return self.binaries.version

    @property
    def major(self) -> int:
        """Return the server's major version."""
        return self.binaries.major

    # --- coming up --------------------------------------------------------------------------------

    def init(self) -> None:
        """Make the data folder unless it is there; one whose making was cut short is made again."""
        if self.data.exists():
            return
        self.home.mkdir(parents=True, exist_ok=True)
        self.account.own(self.home)
        draft = self.home / "data.part"
        shutil.rmtree(draft, ignore_errors=True)
        password_file = self.home / "password.part"
        write_private(password_file, self.password + "\n")
        self.account.own(password_file)
        try:
            self._run(
                "initdb",
                *("-D", draft, "-U", SUPERUSER, "--pwfile", password_file, "--auth=scram-sha-256"),
                *("--encoding=UTF8", "--locale=C", "--data-checksums", "--no-instructions"),
                *(("--no-sync",) if self.settings.get("fsync") == "off" else ()),
            )
        finally:
            password_file.unlink(missing_ok=True)
        with (draft / "postgresql.conf").open("a") as conf:
            conf.write(f"include '{OUR_SETTINGS_FILE}'\n")
        draft.rename(self.data)

    def start(self) -> None:
        """Bring the server up, whatever state it was left in, and return when it answers.

        Raises `StackError` with the log's last lines when it does not come up.
        """
        if self.is_running():
            self.wait_ready()
            return
        self.init()
        self._write_settings()
        self._forget_stale_pid_file()
        for late in poll(LINGERING_SECONDS, pause=0.25):
            if self._try_start():
                break
            if late or LINGERING_SIGN not in tail(self.log, 5):
                raise self._start_failed()
        self.wait_ready()

    def wait_ready(self, seconds: float = START_SECONDS) -> None:
        """Return as soon as the server answers a query, crash recovery included."""
        for late in poll(seconds, pause=0.1):
            try:
                self.connect().close()
                return
            except psycopg.OperationalError as error:
                if WRONG_PASSWORD_SIGN in str(error):
                    raise self._wrong_password() from error
                if late or not self.is_running():
                    raise StackError(
                        f"PostgreSQL on {self.host}:{self.port} to answer within {seconds:.0f} s",
                        str(error).splitlines()[0],
                        "read the server's log",
                        self.log,
                    ) from error

    def restart(self, mode: StopMode = "fast") -> None:
        """Stop in the given mode and start again; `immediate` makes the server go through crash recovery."""
        self.stop(mode)
        self.start()

    # --- going down -------------------------------------------------------------------------------

    def stop(self, mode: StopMode = "fast") -> None:
        """Stop the server if it runs; `immediate` is a crash as far as the data folder shows."""
        if not self.is_running():
            return
        try:
            self._run("pg_ctl", "-D", self.data, "-w", "-m", mode, "stop")
        except StackError:
            if self.is_running():  # else it died by itself meanwhile
                raise

    def kill(self) -> None:
        """Kill the postmaster with SIGKILL, as the kernel does when memory runs out, and see it gone."""
        pid = self.pid()
        if pid is None:
            return
        os.kill(pid, signal.SIGKILL)
        for _ in poll(LINGERING_SECONDS, pause=0.02):
            if not self.is_running():
                return

    def remove(self) -> None:
        """Stop the server and delete its files."""
        self.stop("immediate")
        shutil.rmtree(self.home, ignore_errors=True)

    # --- asking -----------------------------------------------------------------------------------

    def pid(self) -> int | None:
        """Return the postmaster's process id, or None when no process works in our data folder.

        The pid file alone proves nothing: after a reboot its number may belong to anybody.
        """
        with suppress(OSError, ValueError, IndexError, psutil.Error):
            pid = int((self.data / "postmaster.pid").read_text().split("\n")[0])
            if psutil.Process(pid).cwd() == str(self.data.resolve()):
                return pid
        return None

    def is_running(self) -> bool:
        """Return whether our postmaster is alive."""
        return self.pid() is not None

    def dsn(self, database: str = SUPERUSER, user: str = SUPERUSER, password: str | None = None) -> str:
        """Return a connection string with the password in it: hand it to a driver, never to a log."""
        return make_conninfo(
            host=self.host,
            port=self.port,
            dbname=database,
            user=user,
            password=self.password if password is None else password,
        )

    def connect(self, database: str = SUPERUSER, **options: Any) -> psycopg.Connection:
        """Open a connection of the superuser, in autocommit unless `options` (psycopg's) say otherwise."""
        options = {"autocommit": True, "connect_timeout": 10} | options
        return psycopg.connect(self.dsn(database), **options)

    def run_program(self, name: str, *arguments: str | Path, **options: Any) -> str:
        """Run a client program (psql, pgbench, ...) against this server and return its output.

        Host, port, user and password go by environment, so that no command line shows them.
        """
        return self._run(name, *arguments, env=os.environ | self.environment(), **options)

    def environment(self, database: str = SUPERUSER) -> dict[str, str]:
        """Return the libpq variables that lead a client program to this server as its superuser."""
        return {
            "PGHOST": self.host,
            "PGPORT": str(self.port),
            "PGUSER": SUPERUSER,
            "PGPASSWORD": self.password,
            "PGDATABASE": database,
        }

    @contextmanager
    def temporary_database(self, name: str) -> Iterator["Database"]:
        """Make an empty database, and drop it at the end with its slots and whatever still uses it."""
        database = Database(self, name)
        with self.connect() as connection:
            connection.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
        try:
            yield database
        finally:
            database.drop()

    # --- details ----------------------------------------------------------------------------------

    def _write_settings(self) -> None:
        socket = {"listen_addresses": "", "unix_socket_directories": self.host, "unix_socket_permissions": "0700"}
        address = {"port": str(self.port)} | (socket if self.host.startswith("/") else {"listen_addresses": self.host})
        settings = SETTINGS | address | dict(self.settings)
        quoted = (f"{name} = '{value.replace(chr(39), chr(39) * 2)}'" for name, value in settings.items())
        write_private(self.data / OUR_SETTINGS_FILE, "\n".join(quoted) + "\n")
        self.account.own(self.data / OUR_SETTINGS_FILE)

    def _forget_stale_pid_file(self) -> None:
        if self.pid() is None:
            (self.data / "postmaster.pid").unlink(missing_ok=True)

    def _try_start(self) -> bool:
        options = ("-D", self.data, "-l", self.log, "-w", "-t", str(START_SECONDS))
        return self.account.run([self.binaries.program("pg_ctl"), *options, "start"]).returncode == 0

    def _start_failed(self) -> StackError:
        last = tail(self.log, 6)
        if PORT_TAKEN_SIGN in last:
            return StackError(
                f"port {self.port} to be free for PostgreSQL",
                "another program listens on it",
                "choose another port, or stop that program",
                self.log,
            )
        return StackError(f"PostgreSQL {self.version} to start in {self.data}", last, "read the server's log", self.log)

    def _wrong_password(self) -> StackError:
        return StackError(
            f"the server in {self.data} to know its password",
            "it was initialised with another one",
            "restore the generated passwords, or start over with `make clean` (its data is lost)",
            self.log,
        )

    def _run(self, name: str, *arguments: str | Path, **options: Any) -> str:
        said = self.account.run([self.binaries.program(name), *arguments], **options)
        if said.returncode != 0:
            raise StackError(
                f"`{name}` of PostgreSQL {self.version} to succeed",
                (said.stderr or said.stdout).strip() or f"exit status {said.returncode}",
                "read the message above and the server's log",
                self.log,
            )
        return said.stdout


@dataclass(frozen=True)
class Database:
    """One database on a server of ours."""

    server: Server
    name: str

    def dsn(self, user: str = SUPERUSER, password: str | None = None) -> str:
        """Return a connection string to this database (it holds the password)."""
        return self.server.dsn(self.name, user, password)

    def connect(self, **options: Any) -> psycopg.Connection:
        """Open a connection of the superuser to this database, by default in autocommit."""
        return self.server.connect(self.name, **options)

    def execute(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        """Run one statement (or several, without parameters) on a fresh connection and return its rows."""
        with self.connect() as connection:
            cursor = connection.execute(statement.encode(), parameters or None)
            return cursor.fetchall() if cursor.description else []

    def drop(self) -> None:
        """Drop this database together with its slots, ending whoever uses them."""
        with self.server.connect() as connection:
            self._end_sessions(connection)
            self._end_prepared_transactions(connection)
            slots = "select slot_name from pg_replication_slots where database = %s"
            for (slot,) in connection.execute(slots, (self.name,)).fetchall():
                connection.execute("select pg_drop_replication_slot(%s)", (slot,))
            statement = sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(self.name))
            connection.execute(statement)

    def _end_sessions(self, connection: psycopg.Connection) -> None:
        end = "select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = %s"
        connection.execute(end, (self.name,))

    def _end_prepared_transactions(self, connection: psycopg.Connection) -> None:
        of_ours = "select gid from pg_prepared_xacts where database = %s"
        names = connection.execute(of_ours, (self.name,)).fetchall()
        if names:
            with self.connect() as inside:
                for (name,) in names:
                    inside.execute(sql.SQL("rollback prepared {}").format(sql.Literal(name)))

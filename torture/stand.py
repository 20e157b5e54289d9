"""The stand: a source of its own that may be stopped hard, a control server, Spark in this process, and the tables."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.lake import start_spark
from penstock.flow.spark_job import SparkJob
from penstock.source import ddl_trigger
from stack import ports
from stack.paths import Project
from stack.servers import lake_catalog
from stack.servers.binaries import Binaries, from_wheel
from stack.servers.postgres import Server
from stack.servers.postgres_user import Account, reachable_folder
from stack.spark import spark_conf
from tests import postgres_versions
from tests.conftest import DEBIAN_15, LakeCatalog
from tests.pipeline_env import PipelineEnv, copy_without_spark

MODEST = {
    "shared_buffers": "64MB",
    "max_wal_size": "1GB",
    "fsync": "off",  # the stops are the server's, not the machine's
    "autovacuum": "off",
    "max_connections": "60",
    "max_prepared_transactions": "20",
    "max_locks_per_transaction": "256",
}
TABLES = """
create schema aside;
create type mood as enum ('calm', 'keen', 'sad');
create domain amount as int default 7 check (value > 0);
create table plain (id int primary key, v int, w int, s text, t text, n numeric(10,2), at timestamptz);
create table toasted (id int primary key, v int, s text, big text);
alter table toasted alter s set storage external, alter big set storage external;
create table pair (a int, b text, v int, s text, primary key (a, b));
create table bag (s text, t text, v int);
alter table bag replica identity full;
create table fullkey (id int primary key, v int, s text);
alter table fullkey replica identity full, alter s set storage external;
create table listed (id int primary key deferrable initially deferred, v int, s text);
alter table listed replica identity full;
create table measured (id double precision[] primary key, v int, s text);
create table byindex (id int not null, code int not null, v int, s varchar(5000));
create unique index byindex_id on byindex (id);
alter table byindex replica identity using index byindex_id;
create table labelled (id int primary key, mood mood, other mood, price amount, v int);
create table made (id int primary key, v int, g int generated always as (v * 2) stored);
create table typed (id int primary key, b boolean, j jsonb, u uuid, d date, f float8, a int[], y bytea, n numeric);
create table parted (id int primary key, v int, s text) partition by range (id);
create table parted_0 partition of parted for values from (0) to (100);
create table parted_1 partition of parted for values from (100) to (200);
create table parted_rest partition of parted default;
create table deep (id int, v int, s text, primary key (id)) partition by range (id);
create table deep_0 partition of deep for values from (0) to (200) partition by range (id);
create table deep_00 partition of deep_0 for values from (0) to (100);
create table deep_01 partition of deep_0 for values from (100) to (200);
create table deep_1 partition of deep for values from (200) to (400);
create table loose (id int, v int, s text) partition by range (id);
alter table loose replica identity full;
create table loose_0 partition of loose for values from (0) to (200);
alter table loose_0 replica identity full;
create table loose_rest partition of loose default;
alter table loose_rest replica identity full;
create type spot as (x int, y text);
create table placed (id int primary key, at spot, v int);
create table nest (id int primary key, v int, s text);
"""
FILLED = """
insert into plain select n, n, -n, 'row ' || n, 'text', n / 3.0, '2024-01-01' from generate_series(1, 60) n;
insert into toasted select n, n, repeat(md5(n::text), 100), repeat(md5(n::text), 150) from generate_series(1, 40) n;
insert into pair select n % 20, 'b' || n, n, 's' from generate_series(1, 60) n;
insert into bag select 's' || n % 3, null, n % 4 from generate_series(1, 40) n;
insert into fullkey select n, n, repeat('x', 3000) from generate_series(1, 40) n;
insert into listed select n, n, 's' from generate_series(1, 40) n;
insert into measured select array[n, 'NaN'::float8, '-0'::float8], n, repeat('x', 3000) from generate_series(1, 20) n;
insert into byindex select n, n * 2, n, 's' || n from generate_series(1, 40) n;
insert into labelled select n, 'calm', 'sad', n, n from generate_series(1, 30) n;
insert into made select n, n from generate_series(1, 30) n;
insert into typed (id, b, f) select n, n % 2 = 0, n / 7.0 from generate_series(1, 30) n;
insert into parted select n, n, 's' from generate_series(1, 300, 5) n;
insert into deep select n, n, 's' from generate_series(1, 399, 7) n;
insert into loose select n, n, 's' from generate_series(1, 300, 6) n;
insert into placed select n, row(n, 'y')::spot, n from generate_series(1, 20) n;
insert into nest select n, n, 's' from generate_series(1, 20) n;
"""


def _other_binaries(major: int) -> Binaries:
    return Binaries.at(DEBIAN_15) if major == 15 else postgres_versions.binaries(major, Project.here())


class Stand(PipelineEnv):
    """A pipeline that copies in this process, range after range as Spark's tasks do: many small tables need no cluster."""

    def submit(self, job: SparkJob) -> None:
        """Run a Spark application, or carry out a copy without."""
        if job.application.stem == "copy_tables":
            copy_without_spark(job)
        else:
            super().submit(job)


@contextmanager
def stand(
    name: str, *, apart: bool, told: bool = False, drop: bool = False, spark: bool = True, major: int | None = None
) -> Iterator[PipelineEnv]:
    """Start everything, bootstrap the pipeline, and remove it all afterwards.

    `apart` keeps ledger and catalog in two databases; `told` installs the event trigger at the source, `drop` lets dropped columns go; without `spark`
    there are servers only, and no pipeline yet. The source is the embedded PostgreSQL, or one of another `major` version.
    """
    with tempfile.TemporaryDirectory(prefix="penstock-torture-", ignore_cleanup_errors=True) as made:
        Path(made).chmod(0o711)
        home = reachable_folder(Path(made), Account.for_postgres())
        binaries = from_wheel(home)
        of_source = binaries if major is None else _other_binaries(major)
        source = Server(home / "source", of_source, ports.choose(), "only-for-torture", MODEST)
        control = Server(home / "control", binaries, ports.choose(), "only-for-torture", MODEST)
        try:
            source.start()
            control.start()
            with (
                source.temporary_database("torture") as data,
                control.temporary_database("lake") as catalog,
                control.temporary_database("ledger") as ledger,
            ):
                lake_catalog.create_tables(catalog.dsn())
                lake = LakeCatalog(spark_conf.CATALOG, catalog, Path(made) / "warehouse")
                env = Stand(data, ledger if apart else catalog, Path(made) / "landing", name, lake)
                if not spark:
                    yield env
                    return
                env.session = start_spark(lake, Path(made), memory="1500m")
                try:
                    begin(env, told=told, drop=drop)
                    yield env
                finally:
                    env.spark.stop()
        finally:
            source.remove()
            control.remove()


def begin(env: PipelineEnv, *, told: bool = False, drop: bool = False) -> None:
    """Make and fill the tables, and bootstrap the pipeline over them."""
    if told:
        env.sql(ddl_trigger.install_statement())
    env.settings = {
        **env.settings,
        "copy": {"parallel": 2},
        "maintain": {"patience": "1s", "cuts": "1s", "daily_cuts": "1s", "old_tables": "1s"},
        "lake": {
            "wait": 60,
            "on_dropped_partition": "follow",
            "on_dropped_column": "drop" if drop else "keep",
        },
        "source": {**env.settings.get("source", {}), "slot_timeout": 10, "ddl_trigger": told},
    }
    env.sql(TABLES)
    env.bootstrap(FILLED)

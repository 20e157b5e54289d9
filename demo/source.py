"""The demo's source database: pgbench's tables as pgbench makes them, and the shop, always from the beginning.

What an earlier run left (tables, slots, sessions, a load that was killed) goes with the old database. Everything
belongs to the application's role; the reader may read, and finds the publication made by the owner.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files

from psycopg import Connection, sql
from psycopg.conninfo import make_conninfo

from demo import every_type
from stack.servers import databases
from stack.servers.databases import CAPTURE, READER, SHOP_OWNER, Room
from stack.servers.postgres import Database

SCALE = 10
PUBLICATION = "penstock_shop"
SCHEMAS = ("public", "shop")

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Size:
    """How much there is to mirror: published tables (a partitioned one counts once) and their rows."""

    tables: int
    rows: int


def create(database: Database, *, scale: int = SCALE, progress: Progress = lambda _: None) -> Size:
    """Make a new database, with 100,000 rows of pgbench per unit of `scale` and some 20,000 of the shop.

    The roles of `stack.servers.databases` must exist. Returns what is published.
    """
    progress(f"a new database {database.name}")
    database.drop()
    databases.prepare(database.server, (), [Room(database.name, SHOP_OWNER, (CAPTURE, READER))], {})
    with database.connect() as connection:
        every_type.create_extensions(connection)
    progress(f"pgbench's tables at scale {scale}")
    as_owner = make_conninfo(dbname=database.name, options=f"-c role={SHOP_OWNER}")
    database.server.run_program("pgbench", "-i", "-q", "-s", str(scale), as_owner)
    progress("the shop's tables")
    with database.connect(autocommit=False) as connection:
        connection.execute(sql.SQL("set local role {}").format(sql.Identifier(SHOP_OWNER)))
        connection.execute(_text("schema.sql"))
        connection.execute(_text("content.sql"))
        every_type.create(connection)
        _publish(connection)
    with database.connect() as connection:
        connection.execute("vacuum analyze")
        return measure(connection)


GIFT_CARDS = (
    "create table shop.gift_cards (id bigint generated always as identity primary key, amount numeric(8, 2) not null, "
    "greeting text, sold_at timestamptz not null default clock_timestamp())",
    "insert into shop.gift_cards (amount, greeting) select n % 90 + 5, 'number ' || n from generate_series(1, 5000) n",
    f"grant select on shop.gift_cards to {READER}",
    f"alter publication {PUBLICATION} add table shop.gift_cards",
)


def sell_gift_cards(database: Database) -> None:
    """Add a table with rows to shop and publication, as its owner; the load uses it from then on."""
    with database.connect(autocommit=False) as connection:
        connection.execute(sql.SQL("set local role {}").format(sql.Identifier(SHOP_OWNER)))
        for statement in GIFT_CARDS:
            connection.execute(statement)


def published(connection: Connection) -> list[sql.Identifier]:
    """Name the tables to publish, in order: ordinary or partitioned, logged, no partitions."""
    rows = connection.execute(
        "select nspname, relname from pg_class c join pg_namespace n on n.oid = relnamespace "
        "where nspname = any(%s) and relkind in ('r', 'p') and relpersistence = 'p' and not relispartition "
        "order by 1, 2",
        (list(SCHEMAS),),
    )
    return [sql.Identifier(*row) for row in rows]


def measure(connection: Connection) -> Size:
    """Count the published tables and their rows."""
    tables = published(connection)
    count = sql.SQL("select count(*) from {}")
    rows = [connection.execute(count.format(table)).fetchone() for table in tables]
    return Size(len(tables), sum(row[0] for row in rows if row))


def _publish(connection: Connection) -> None:
    """Do what only the tables' owner can, so that our roles need no more than REPLICATION, and SELECT."""
    # pgbench's history has no key. A publication that publishes updates makes PostgreSQL refuse updates and deletes
    # of such a table (pgbench itself only inserts), and Penstock refuses to do that to anybody's table. FULL keeps
    # the table as usable as it was.
    connection.execute("alter table public.pgbench_history replica identity full")
    # the publication before the grants: it locks the tables, so that no autovacuum waits for our row of one in pg_class
    connection.execute(
        sql.SQL("create publication {} for table {} with (publish_via_partition_root = true)").format(
            sql.Identifier(PUBLICATION), sql.SQL(", ").join(published(connection))
        )
    )
    for schema in map(sql.Identifier, SCHEMAS):
        reader = sql.Identifier(READER)
        connection.execute(sql.SQL("grant usage on schema {} to {}").format(schema, reader))
        connection.execute(sql.SQL("grant select on all tables in schema {} to {}").format(schema, reader))


def _text(name: str) -> bytes:
    return files("demo").joinpath(name).read_bytes()

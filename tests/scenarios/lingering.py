"""A pipeline whose merges linger, copied and not merged yet, in databases that a real `spark-submit` reaches too."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from stack.servers.postgres import Server
from tests.conftest import LakeCatalog
from tests.pipeline_env import PipelineEnv

TABLES = """
create table item (id int primary key, name text);
create table visit (page text, n int);
alter table visit replica identity full;
insert into item select n, 'item ' || n from generate_series(1, 200) n;
insert into visit select 'page ' || n % 3, n from generate_series(1, 50) n;
"""


@contextmanager
def lingering_pipeline(server: Server, lake: LakeCatalog, folder: Path, name: str) -> Iterator[PipelineEnv]:
    """Lend the pipeline, on two databases of its own."""
    with server.temporary_database(name) as source, server.temporary_database(f"{name}_ledger") as ledger:
        made = PipelineEnv(source, ledger, folder / "landing", name, lake)
        made.settings = {"merge": {"linger": "5m"}, "spark": {"driver_memory": "1g"}}
        made.begin(TABLES)
        yield made

"""How long the server takes for a page of a large deployment: said, not asserted, for a busy machine is no reason to fail."""

from collections.abc import Iterator
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

import pytest
from fastapi.testclient import TestClient

from stack.servers.postgres import Database
from tests.page import scenes
from tests.page.airflow_rows import make_dags
from tests.page.scenes import Scene

pytestmark = pytest.mark.slow

PIPELINES, TABLES, DAYS = 50, 1000, 30
TABLE_CUTS = """
insert into penstock.table_cut
    (cut, pipeline, oid, inserts, updates, deletes, truncates, rows_deleted, rows_written, seconds, rows, files, bytes)
select c.number, c.pipeline, t.oid, 10, 10, 1, 0, 11, 20, 0.3, 40000 + c.number, 7, (40000 + c.number) * 61
from penstock.cut as c
join penstock.table as t on t.pipeline = c.pipeline
where c.pipeline = %(name)s
"""
TRIMMED = """
delete from penstock.cut
where
    pipeline = %(name)s and published_at < now() - interval '1 day'
    and number not in (
        select max(number) from penstock.cut where pipeline = %(name)s group by date_trunc('day', published_at)
    )
"""


def fill(scene: Scene, *, tables: int, every: int) -> None:
    """Thirty days of windows at these steps, of looks every five minutes, and of cuts as maintenance leaves them."""
    scene.bootstrap()
    more = [scenes.facts(30000 + number, f"part_{number:04}") for number in range(tables - len(scenes.TABLES))]
    scene.ledger.tables.save(scene.name, [*scene_facts(), *more])
    scene.run(scenes.WINDOWS, count=DAYS * 86400 // every, every=every, tables=len(scenes.TABLES))
    scene.run(scenes.CUTS, behind=90)
    scene.run(TRIMMED)
    scene.run(TABLE_CUTS)
    scene.settle()
    scene.samples(count=DAYS * 288)
    scene.lake_samples(count=DAYS * 288)
    scene.run(
        "insert into penstock.event (pipeline, at, slug, level, table_oid, message)"
        " select %(name)s, now() - i * interval '10 minutes', 'schema-followed', 'info', 16402, 'a column was added'"
        " from generate_series(1, 4000) as i"
    )
    scene.run(
        "update penstock.event set details = '{\"rule\": \"add-column\"}' where pipeline = %(name)s and details = '{}'"
    )


def scene_facts() -> list[scenes.TableFacts]:
    return [scenes.facts(16401 + number, table) for number, table in enumerate(scenes.TABLES)]


@pytest.fixture
def deployment(scene: Scene, pipelines: Path) -> Iterator[list[Scene]]:
    """Fifty pipelines; the first has nearly all of the tables, and a window every minute."""
    small = len(scenes.TABLES)
    others = [Scene(scene.ledger, scene.database, f"large{number:02}") for number in range(1, PIPELINES)]
    for each in others:
        (pipelines / f"{each.name}.yaml").write_text(f'name: {each.name}\ntables: {{include: ["shop.*"]}}\n')
        fill(each, tables=small, every=300)
    fill(scene, tables=TABLES - small * len(others), every=60)
    scene.database.execute("analyze")
    yield [scene, *others]
    for each in others:
        (pipelines / f"{each.name}.yaml").unlink()
        each.database.execute("delete from penstock.pipeline where name = %s", each.name)
        make_dags(each.name, missing=["capture", "merge"])


def test_a_large_deployment_is_shown_quickly(
    viewer: TestClient, deployment: list[Scene], page_ledger: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    name = deployment[0].name
    places = {
        "overview": "/cdc/",
        "pipeline": f"/cdc/pipelines/{name}",
        "a small pipeline": f"/cdc/pipelines/{deployment[1].name}",
        "table": f"/cdc/pipelines/{name}/tables/{scenes.ORDER}",
        "charts of a pipeline, 30 d": f"/cdc/api/pipelines/{name}/series?hours=720",
        "charts of a table, 30 d": f"/cdc/api/pipelines/{name}/tables/{scenes.ORDER}/series?hours=720",
    }
    lines = []
    for what, place in places.items():
        times, used = [], process_time()
        for _ in range(9):
            began = perf_counter()
            assert viewer.get(place).status_code == 200
            times.append(1000 * (perf_counter() - began))
        cpu = 1000 * (process_time() - used) / len(times)
        said = f"median {median(times):.0f} ms, fastest {min(times):.0f}, slowest {max(times):.0f}"
        lines.append(f"{what}: {said}; {cpu:.0f} ms of it CPU of Python")
    with capsys.disabled():
        about = f"{PIPELINES} pipelines, {TABLES} tables, {DAYS} days of windows and samples"
        print(f"\n{about}\n" + "\n".join(lines))  # noqa: T201  # said, not asserted

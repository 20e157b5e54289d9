"""Stores that ask to be asked less often, refuse, are full or go away, by a real S3 server and a real `spark-submit`.

What is of the store pauses nothing and has its name; what is of one table pauses that one.
"""

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from penstock import package
from penstock.cli.context import spark_submit
from penstock.errors import LakeError, PenstockError
from penstock.flow.load import bootstrap
from penstock.flow.load import run as rebuild
from penstock.flow.spark_job import SparkJob
from stack.cluster import object_store
from stack.cluster.standalone import JARS
from stack.paths import Project
from stack.servers.postgres import Server
from stack.spark import jars, spark_conf
from tests.conftest import LakeCatalog
from tests.faulty_store import DENIED, EXPIRED, FULL, INTERNAL, RESET, SLOW_DOWN, TOO_MANY, FaultyStore
from tests.pipeline_env import ROOT, PipelineEnv, spark_variables
from tests.real_store import real_store

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]  # several applications a test, and the patience of clients

_log = logging.getLogger(__name__)
TABLES = ("cold", "hot", "warm")
LANDING, LAKE = "/landing/", "/warehouse/"
HOT = "/public/hot-"
"""What is in the path of each file of one table."""


class Desk:
    """A pipeline whose landing zone and lake are in a store behind a proxy; `lines` is what the last driver said."""

    def __init__(self, env: PipelineEnv, store: FaultyStore, library: Path) -> None:
        self.env, self.store, self.library = env, store, library
        self.lines: list[str] = []

    def submit(self, job: SparkJob) -> None:
        self.lines = []
        spark_submit("local[2]", self._hear)(replace(job, py_files=self.library))

    def _hear(self, line: str) -> None:
        _log.info(line)
        self.lines.append(line)

    def change(self) -> None:
        for table in TABLES:
            self.env.sql(f"update {table} set v = v || '+'")
        self.env.land()

    def merge(self) -> None:
        self.env.submit = self.submit  # type: ignore[method-assign]
        self.env.merge()

    def fails(self, work: Callable[[], object]) -> PenstockError:
        with pytest.raises(PenstockError) as caught:
            work()
        frames = [line.lstrip().startswith("at ") for line in self.lines]  # of a client's warning log4j shows one
        assert not any(map(all, pairwise(frames))), "a trace of Java's"
        return caught.value

    @property
    def states(self) -> dict[str, tuple[str, str | None]]:
        return {each.name: (each.state, each.paused_slug) for each in self.env.tables}


@pytest.fixture(scope="module")
def store(java_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[FaultyStore, dict[str, str]]]:
    project = Project.here()
    if missing := jars.missing(project.jars, JARS):
        jars.fetch(missing, project.jars, java_home, project.logs / "fetch-jars.log")
    with (
        real_store(java_home, tmp_path_factory.mktemp("store")) as (real, _),
        FaultyStore(real.address).running() as it,
    ):
        yield it, replace(real, address=it.address).environment()


@pytest.fixture
def desk(
    postgres16: Server,
    lake: LakeCatalog,
    java_home: Path,
    store: tuple[FaultyStore, dict[str, str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> Iterator[Desk]:
    """A pipeline of three tables, copied and merged, with a change of each that is captured and not merged."""
    proxy, login = store
    settings = spark_conf.settings(Project.here().jars, lake.warehouse, tmp_path / "scratch")
    class_path = jars.class_path(Project.here().jars, object_store.CLIENT)
    settings["spark.driver.extraClassPath"] += f":{class_path}"
    settings |= object_store.spark_settings(proxy.address, spark_conf.CATALOG)
    prefix = f"spark.sql.catalog.{spark_conf.CATALOG}.s3.retry"
    settings |= {f"{prefix}.num-retries": "3", f"{prefix}.min-wait-ms": "50", f"{prefix}.max-wait-ms": "100"}
    spark_conf.write_conf(tmp_path / "conf", settings)
    for variable, value in {**login, **spark_variables(java_home, tmp_path / "conf")}.items():
        monkeypatch.setenv(variable, value)
    package.build(ROOT, tmp_path / "penstock.zip")
    name = f"trouble_{abs(hash(request.node.name)) % 10**6}"
    with postgres16.temporary_database(name) as source, postgres16.temporary_database(f"{name}_ledger") as ledger:
        env = PipelineEnv(source, ledger, tmp_path / "landing", name, lake)
        options = {
            "endpoint_override": proxy.address,
            "region": object_store.REGION,
            "access_key_env": object_store.ACCESS_KEY,
            "secret_key_env": object_store.SECRET_KEY,
        }
        env.settings = {
            "landing": {"uri": f"s3://{object_store.LANDING}/zone", "options": options},
            "spark": {"driver_memory": "1g"},
        }
        env.each(TABLES, "create table {t} (id int primary key, v text); insert into {t} values (1, 'a'), (2, 'b')")
        made = Desk(env, proxy, tmp_path / "penstock.zip")
        bootstrap.prepare(env.ctx)
        bootstrap.copy(env.ctx, made.submit)
        made.merge()
        made.change()
        yield made


def test_a_store_that_asks_one_table_to_slow_down_is_waited_for(desk: Desk) -> None:
    for part in ("data/", "metadata/"):
        with desk.store.trouble(SLOW_DOWN, HOT, methods=("PUT",), times=3) as fault:
            desk.merge()
        assert fault.met == 3, part
        desk.change()

    assert set(desk.states.values()) == {("ready", None)}


@pytest.mark.parametrize(
    ("answer", "part", "slug"),
    [
        (SLOW_DOWN, HOT, "lake-unreachable"),
        (TOO_MANY, LAKE, "lake-unreachable"),
        (RESET, LAKE, "lake-unreachable"),
        (EXPIRED, LAKE, "lake-unreachable"),
        (FULL, LAKE, "lake-unwritable"),
        (INTERNAL, "/windows/", "landing-unreachable"),
        (DENIED, "/windows/", "landing-unreachable"),
    ],
    ids=lambda value: "-".join(map(str, value)) if isinstance(value, tuple) else str(value).strip("/"),
)
def test_what_is_of_the_store_has_its_name_and_pauses_nothing(
    desk: Desk, answer: tuple[int, str], part: str, slug: str
) -> None:
    methods = ("PUT",) if part != "/windows/" else ("GET", "HEAD")
    with desk.store.trouble(answer, part, methods=methods) as fault:
        error = desk.fails(desk.merge)

    assert (type(error), error.slug, fault.met > 0) == (LakeError, slug, True)
    assert set(desk.states.values()) == {("ready", None)}
    desk.merge()
    assert set(desk.states.values()) == {("ready", None)}


def test_a_file_that_is_refused_pauses_its_table_where_others_are_taken(desk: Desk) -> None:
    with desk.store.trouble(DENIED, HOT, methods=("PUT",)):
        desk.merge()

    assert desk.states == {
        "cold": ("ready", None),
        "hot": ("paused", "lake-unreadable"),
        "warm": ("ready", None),
    }


def test_maintenance_names_the_store_too(desk: Desk) -> None:
    for answer in (EXPIRED, INTERNAL):
        with desk.store.trouble(answer, LAKE, methods=("GET", "HEAD")):
            assert desk.fails(desk.env.maintain).slug == "lake-unreachable"
    assert set(desk.states.values()) == {("ready", None)}


def test_copies_and_captures_name_the_store_too(desk: Desk) -> None:
    with desk.store.trouble(EXPIRED, "/copies/", methods=("PUT",)):
        error = desk.fails(lambda: rebuild.resync(desk.env.ctx, ["public.cold"], desk.submit))
        assert error.slug == "landing-unreachable"
    with desk.store.trouble(EXPIRED, LANDING, methods=("PUT",)):
        desk.env.sql("insert into cold values (3, 'c')")
        desk.env.flush()
        assert desk.fails(desk.env.capture).slug == "landing-unreachable"
    assert set(desk.states.values()) == {("ready", None)}

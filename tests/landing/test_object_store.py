"""The landing zone in a real S3 server: S3Proxy, started as `make cluster-test` and the containers start it."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from penstock.conditions import Directive
from penstock.config.model import Pipeline
from penstock.contract.manifest import ChangeCounts
from penstock.errors import LakeError
from penstock.flow import landing_mark
from penstock.flow.context import Context
from penstock.flow.maintain import retention
from penstock.landing import layout
from penstock.landing.zone import LandingZone
from penstock.lsn import Lsn
from stack.cluster import object_store
from stack.cluster.object_store import ObjectStore
from stack.servers.postgres import Database
from tests.faulty_store import DENIED, EXPIRED, FULL, INTERNAL, RESET, SLOW_DOWN, TOO_MANY, FaultyStore
from tests.landing.samples import COLUMNS, inserts
from tests.ledger.conftest import START, bootstrap, connection_to, entry, facts, plan, start_copy
from tests.real_store import real_store

pytestmark = pytest.mark.slow  # its jars are fetched


@pytest.fixture(scope="module")
def server(java_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ObjectStore, int, Path]]:
    """The store as its clients see it, its process, and its folder."""
    folder = tmp_path_factory.mktemp("store")
    with real_store(java_home, folder) as (store, pid):
        yield store, pid, folder


def zone_of(store: ObjectStore, bucket: str = object_store.LANDING) -> LandingZone:
    return LandingZone.open(f"s3://{bucket}/penstock", store.options(), store.environment())


@pytest.fixture
def zone(server: tuple[ObjectStore, int, Path]) -> LandingZone:
    return zone_of(server[0])


def test_text_is_written_replaced_listed_and_read(zone: LandingZone) -> None:
    zone.write_text("texts/plan.json", "one")
    zone.write_text("texts/plan.json", "zwei ü")
    zone.write_text("texts/per cent %20+/result.json", "{}")

    assert zone.read_text("texts/plan.json") == "zwei ü"
    assert zone._require("texts/plan.json").size == len("zwei ü".encode())
    assert zone.list("texts") == ["texts/per cent %20+/result.json", "texts/plan.json"]
    assert zone.folders("texts") == ["texts/per cent %20+"]


def test_a_landing_file_larger_than_one_part_of_an_upload_goes_both_ways(zone: LandingZone) -> None:
    writer = zone.writer("files/t.parquet", COLUMNS)
    for _ in range(3):
        writer.write(inserts(3))
    entry = writer.close(oid=1, version=1, counts=ChangeCounts(inserts=9))
    zone.write_text("files/large.txt", "x" * (12 << 20))

    assert zone.read("files/t.parquet").num_rows == 9
    assert zone._require("files/t.parquet").size == entry.bytes
    assert len(zone.read_text("files/large.txt")) == 12 << 20


def test_a_folder_goes_with_all_it_holds_though_the_store_refuses_to_delete_many_at_once(zone: LandingZone) -> None:
    for path in ("gone/a/1", "gone/a/b/2", "gone/3", "gone-not/4"):
        zone.write_text(path, path)

    for _ in range(2):
        zone.delete_folder("gone")

    assert zone.list("gone") == []
    assert not zone.exists("gone")
    assert zone.list("gone-not") == ["gone-not/4"]


def test_what_is_not_there_is_said_to_be_missing(zone: LandingZone) -> None:
    assert not zone.exists("nothing.json")
    assert zone.list("nowhere") == []
    for read in (zone.read, zone.read_text):
        with pytest.raises(LakeError, match=r"nothing\.json") as caught:
            read("nothing.json")
        assert caught.value.slug == "landing-file-missing"


def test_a_wrong_login_is_refused_with_what_to_check_and_without_the_secret(
    server: tuple[ObjectStore, int, Path],
) -> None:
    stranger = zone_of(replace(server[0], secret_key="not-the-secret"))

    for attempt in (lambda: stranger.read_text("plan.json"), lambda: stranger.list("texts")):
        with pytest.raises(LakeError, match="check its address, credentials, rights and network") as caught:
            attempt()
        assert caught.value.slug == "landing-unreachable"
        assert caught.value.directive is Directive.RETRY
        assert "not-the-secret" not in str(caught.value)
    with pytest.raises(LakeError, match=r"answer for s3a://landing/penstock/plan\.json, got: .*signature") as caught:
        stranger.write_text("plan.json", "{}")
    assert caught.value.slug == "landing-unreachable"


def test_a_bucket_that_is_not_there_is_named(server: tuple[ObjectStore, int, Path]) -> None:
    with pytest.raises(LakeError, match=r"s3a://no-bucket/.*bucket does not exist") as caught:
        zone_of(server[0], "no-bucket").write_text("plan.json", "{}")

    assert caught.value.slug == "landing-unreachable"


ANSWERS = (SLOW_DOWN, INTERNAL, TOO_MANY, EXPIRED, DENIED, RESET)


def test_a_store_in_trouble_is_waited_for_and_proves_nothing_of_a_file(
    server: tuple[ObjectStore, int, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    with FaultyStore(server[0].address).running() as proxy:
        zone = zone_of(replace(server[0], address=proxy.address))
        writer = zone.writer("busy/t.parquet", COLUMNS)
        writer.write(inserts(3))
        with proxy.trouble(SLOW_DOWN, "busy/", times=4) as fault:
            writer.close(oid=1, version=1, counts=ChangeCounts(inserts=3))
        assert fault.met == 4
        monkeypatch.setattr("penstock.landing.store.RETRIES", 2)
        hasty = zone_of(replace(server[0], address=proxy.address))

        def write(path: str) -> None:
            hasty.write_text(path, "{}")

        for work, methods in ((hasty.check, ("HEAD",)), (hasty.check, ("GET",)), (write, ("PUT",))):
            for answer in ANSWERS:
                with (
                    proxy.trouble(answer, "busy/t.parquet", methods=methods) as fault,
                    pytest.raises(LakeError) as caught,
                ):
                    work("busy/t.parquet")
                assert (fault.met > 0, caught.value.slug) == (True, "landing-unreachable"), (methods, answer)
        with proxy.trouble(FULL, "busy/", methods=("PUT",)), pytest.raises(LakeError, match="landing-unwritable"):
            write("busy/t.parquet")
        zone.rows("busy/t.parquet")


def test_the_servers_secret_is_on_no_command_line_and_in_no_file(server: tuple[ObjectStore, int, Path]) -> None:
    store, pid, folder = server
    reported = Path(f"/proc/{pid}/cmdline").read_bytes()

    assert b"org.gaul.s3proxy.Main" in reported
    assert store.secret_key.encode() not in reported
    assert not [path for path in folder.rglob("*") if path.is_file() and store.secret_key.encode() in path.read_bytes()]


def test_a_file_goes_and_one_that_is_gone_already_is_no_error(zone: LandingZone) -> None:
    zone.write_text("gone/file.txt", "x")

    for _ in range(2):
        zone.delete("gone/file.txt")

    assert not zone.exists("gone/file.txt")


def test_maintenance_deletes_from_a_store_what_the_ledger_does_not_know(
    server: tuple[ObjectStore, int, Path], database16: Database, tmp_path: Path
) -> None:
    store = server[0]
    landing = {"uri": f"s3://{object_store.LANDING}/penstock", "options": store.options()}
    pipeline = Pipeline.model_validate({"name": "swept", "tables": {"include": ["public.*"]}, "landing": landing})
    ctx = Context(pipeline, lambda _: connection_to(database16), tmp_path, store.environment())
    ctx.ledger.migrate()
    bootstrap(ctx.ledger, "swept")
    ctx.ledger.tables.save("swept", [facts(1, "a"), facts(2, "b")])
    for copy_id, oids in (("both", (1, 2)), ("newer", (1,))):
        copied = {oid: layout.copy_file(layout.copy_folder("swept", copy_id), f"{oid}-00000") for oid in oids}
        start_copy(ctx.ledger, "swept", *oids, copy_id=copy_id)
        for oid, path in copied.items():
            ctx.landing.write_text(path, "rows")
            ctx.ledger.loads.finish_copy(
                "swept", copy_id=copy_id, oid=oid, files=[replace(entry(oid, version=0), path=path)]
            )
    known = layout.window_folder("swept", START, Lsn(START + 8), plan(ctx.ledger, "swept", START, START + 8))
    dead = layout.window_folder("swept", START, Lsn(START + 4), "dead")
    old, young = (layout.run_folder("swept", f"2026{month}21t091500123_3f9a1c2d") for month in ("01", "12"))
    for folder in (known, dead, layout.copy_folder("swept", "dead"), old, young):
        ctx.landing.write_text(f"{folder}/file", "x")

    assert retention.sweep(ctx, datetime(2026, 6, 1, tzinfo=UTC)) == (3, 1)
    assert ctx.landing.list("swept") == sorted(
        [
            f"{known}/file",
            layout.copy_file(layout.copy_folder("swept", "both"), "2-00000"),
            layout.copy_file(layout.copy_folder("swept", "newer"), "1-00000"),
            f"{young}/file",
        ]
    )


def test_the_mark_of_a_zone_is_written_once_into_a_store_and_another_prefix_is_refused(
    server: tuple[ObjectStore, int, Path], database16: Database, tmp_path: Path
) -> None:
    store = server[0]

    def at(prefix: str) -> Context:
        landing = {"uri": f"s3://{object_store.LANDING}/{prefix}", "options": store.options()}
        pipeline = Pipeline.model_validate({"name": "marked", "tables": {"include": ["public.*"]}, "landing": landing})
        return Context(pipeline, lambda _: connection_to(database16), tmp_path, store.environment())

    ctx = at("first")
    ctx.ledger.migrate()
    bootstrap(ctx.ledger, "marked")
    landing_mark.ensure(ctx)
    landing_mark.ensure(ctx)
    landing_mark.require(ctx)
    known = ctx.ledger.pipelines.get("marked").landing_mark
    assert ctx.landing.read_text(layout.mark_file("marked")).splitlines()[0] == known

    with pytest.raises(LakeError, match=r"landing-changed.*s3a://.*second/marked/landing-mark\.txt.*no such file"):
        landing_mark.require(at("second"))
    at("third").landing.write_text(layout.mark_file("marked"), "of another\n")
    with pytest.raises(LakeError, match=r"landing-changed.*another ledger"):
        landing_mark.require(at("third"))

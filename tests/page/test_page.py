"""The page through Airflow's own application: who may see it, what it says, and that its JSON says the same."""

import re
from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import UTC, datetime
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urljoin, urlsplit

import pytest
from fastapi.testclient import TestClient
from psycopg.types.json import Jsonb

from penstock.conditions import CONDITIONS
from penstock.errors import Trouble
from penstock.jobs.maintenance_plan import Figures, MaintenanceResult, TableFolder, TableReport
from penstock.ledger import Ledger
from penstock.page import format
from tests.page import scenes
from tests.page.airflow_rows import make_dags, make_task
from tests.page.scenes import GIB, Scene

PLACES = ("/cdc/", "/cdc/pipelines/shop", "/cdc/runbooks/slot-lost", "/cdc/static/page.css", "/cdc/api/pipelines")


def text(html: str) -> str:
    """What a person reads: no tags, one space."""
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", html)))


@pytest.mark.parametrize("place", PLACES)
def test_nothing_is_shown_without_a_login(anonymous: TestClient, place: str) -> None:
    assert anonymous.get(place).status_code == 401


def test_the_link_of_an_alert_leads_to_the_login_and_back(anonymous: TestClient, login: Callable[..., str]) -> None:
    there = "http://testserver/cdc/runbooks/slot-lost?from=mail"
    browser = {"Accept": "text/html,application/xhtml+xml"}

    answer = anonymous.get(there, headers=browser, follow_redirects=False)
    assert answer.status_code == 303
    leads = urlsplit(urljoin(there, answer.headers["location"]))
    assert (leads.path, parse_qs(leads.query)) == ("/api/v2/auth/login", {"next": [there]})

    form = anonymous.get(leads.geturl(), headers=browser, follow_redirects=False)
    assert form.status_code == 307, "Airflow takes the way back for a safe one"
    assert parse_qs(urlsplit(form.headers["location"]).query) == {"next": [there]}

    framed = anonymous.get(there, headers={**browser, "Sec-Fetch-Dest": "iframe"}, follow_redirects=False)
    assert (framed.status_code, anonymous.get(there).status_code) == (401, 401), "a frame and a program are told"


@pytest.mark.parametrize("place", PLACES)
def test_who_may_not_see_plugins_is_refused(airflow_app: Any, login: Callable[..., str], place: str) -> None:
    stranger = TestClient(airflow_app, headers={"Authorization": f"Bearer {login(None)}"})

    assert stranger.get(place).status_code == 403


def test_a_viewer_sees_the_page(viewer: TestClient, scene: Scene) -> None:
    assert viewer.get("/cdc/").status_code == 200


@pytest.mark.parametrize("method", ["post", "put", "patch", "delete"])
def test_nothing_can_be_changed(viewer: TestClient, scene: Scene, method: str) -> None:
    for place in ("/cdc/", f"/cdc/pipelines/{scene.name}", f"/cdc/api/pipelines/{scene.name}"):
        assert getattr(viewer, method)(place).status_code == 405


def test_an_install_without_pipelines_says_how_to_begin(viewer: TestClient) -> None:
    page = text(viewer.get("/cdc/").text)

    assert "No pipeline yet" in page
    assert viewer.get("/cdc/api/pipelines").json()["pipelines"] == []


def test_a_pipeline_that_was_never_bootstrapped_leads_to_its_bootstrap(viewer: TestClient, scene: Scene) -> None:
    page = viewer.get(f"/cdc/pipelines/{scene.name}").text

    assert "Not started yet" in page
    assert f'href="/dags/{scene.name}.bootstrap"' in page


def test_a_bootstrap_that_the_ledger_does_not_know_yet_is_said_to_be_under_way(
    viewer: TestClient, scene: Scene
) -> None:
    make_dags(scene.name)
    make_task(f"{scene.name}.bootstrap", "check", "scheduled")

    page = viewer.get(f"/cdc/pipelines/{scene.name}").text
    overview = viewer.get("/cdc/api/pipelines").json()

    assert "The bootstrap is under way" in page
    assert "Not started yet" not in page
    assert [each["state"] for each in overview["pipelines"] if each["name"] == scene.name] == ["starting"]


def test_a_healthy_pipeline_has_nothing_to_do(viewer: TestClient, scene: Scene) -> None:
    scenes.healthy(scene)

    shown = viewer.get(f"/cdc/api/pipelines/{scene.name}").json()

    assert [each["title"] for each in shown["advice"]] == [
        "Nothing to do",
        "No one is notified of alarms of the level warn and critical",
    ]
    assert shown["pipeline"]["grade"] == "ok"


def test_a_cut_shows_its_age_and_the_longest_way_of_a_change(viewer: TestClient, scene: Scene) -> None:
    scene.bootstrap()
    scene.past(windows=30)
    scene.run(
        "update penstock.window set rows = greatest(rows, 1),"
        " committed = tstzrange(source_time - interval '7 seconds', source_time, '[]') where pipeline = %(name)s"
    )

    newest, *_, first = viewer.get(f"/cdc/api/pipelines/{scene.name}").json()["cuts"]

    assert newest["delay_seconds"] == 41
    assert newest["oldest_seconds"] == 41 + 4 * 60 + 7, "the oldest of its five windows was landed four minutes before"
    assert first["oldest_seconds"] is None, "what the first cut holds was copied"


def test_the_page_says_until_when_a_merge_keeps_its_application(viewer: TestClient, scene: Scene) -> None:
    scenes.healthy(scene)
    scene.ledger.work.keep_spark(scene.name, until=datetime(2026, 11, 23, 8, 5, tzinfo=UTC), cuts=3)
    place = f"/cdc/pipelines/{scene.name}"

    assert "Spark application is kept until 08:05 UTC, 3 cuts so far" in text(viewer.get(place).text)
    scene.run("update penstock.work set seen_at = seen_at - interval '2 minutes' where pipeline = %(name)s")
    assert "Spark application is kept" not in text(viewer.get(place).text), "its task was killed"
    scene.ledger.work.forget_spark(scene.name)
    assert "Spark application is kept" not in text(viewer.get(place).text)


def test_the_page_says_what_the_json_says(viewer: TestClient, scene: Scene) -> None:
    scenes.filling(scene)

    shown = viewer.get(f"/cdc/api/pipelines/{scene.name}").json()
    page = text(viewer.get(f"/cdc/pipelines/{scene.name}").text)

    it, slot = shown["pipeline"], shown["pipeline"]["slot"]
    assert slot["unread_bytes"] > 11 * GIB
    said = [
        it["cut_lsn"],
        it["position"],
        format.count(it["unmerged_changes"]),
        *map(format.size, (slot["unread_bytes"], slot["retained_bytes"], slot["safe_wal_bytes"], slot["warn_bytes"])),
        *(each["slug"] for each in it["alarms"]),
        *(each["message"] for each in it["alarms"]),
        *(each["title"] for each in shown["advice"]),
        *(each["name"] for each in shown["tables"]),
        *(each["upto_lsn"] for each in shown["windows"]),
        *(each["lsn"] for each in shown["cuts"]),
        *(each["message"] for each in shown["events"]),
    ]
    assert [each for each in said if text(each) not in page] == []


def test_a_table_that_is_being_rebuilt_is_shown_with_how_far_it_is(viewer: TestClient, scene: Scene) -> None:
    scenes.healthy(scene)
    before = viewer.get(f"/cdc/pipelines/{scene.name}").text
    scenes.rebuilding(scene)

    shown = viewer.get(f"/cdc/api/pipelines/{scene.name}").json()
    page = text(viewer.get(f"/cdc/pipelines/{scene.name}").text)

    assert "Tables being rebuilt" not in before
    (rebuild,) = shown["rebuilds"]
    assert (rebuild["table"], rebuild["kind"], rebuild["state"]) == ("shop.order_line", "replay", "building")
    assert rebuild["end_lsn"] == shown["pipeline"]["position"]
    said = (rebuild["id"], rebuild["through_lsn"], rebuild["end_lsn"], format.count(rebuild["rows"]))
    assert [each for each in ("Tables being rebuilt 1", *said) if text(each) not in page] == []


def test_the_page_of_a_table_says_what_the_json_says(viewer: TestClient, scene: Scene) -> None:
    scenes.changed_table(scene)
    place = f"pipelines/{scene.name}/tables/{scenes.ORDER}"

    shown = viewer.get(f"/cdc/api/{place}").json()
    page = text(viewer.get(f"/cdc/{place}").text)

    it = shown["table"]
    assert (it["name"], shown["identity"], shown["key"], it["conflicts"]) == (
        "shop.order",
        "key",
        ["id"],
        {"update_missing": 3},
    )
    assert [(each["source_type"], each["lake_type"]) for each in shown["columns"]] == [
        ("bigint", "bigint"),
        ("timestamptz", "timestamp"),
        ("numeric(12,2)", "decimal(12,2)"),
        (None, "string"),
        ("shop.order_state", "string"),
        ("integer[]", "array<int>"),
    ]
    assert shown["cuts"][0]["rows"] == it["rows"]
    assert shown["copy"]["seconds"] == 47
    assert [(each["columns"], each["partitions"]) for each in shown["fetches"]] == [
        (["state"], []),
        ([], ["order_2026"]),
    ]
    assert {each["outcome"] for each in shown["findings"]} == {"equal"}
    said = [
        *map(format.count, (it["rows"], shown["copy"]["rows"], shown["cuts"][0]["inserts"])),
        format.size(it["bytes"]),
        format.age(shown["freshness_seconds"]),
        it["verified_through"],
        *(each["name"] for each in shown["columns"]),
        *(each["message"] for each in shown["schema_changes"]),
        *(each["lsn"] for each in shown["cuts"]),
        "of 2 dimensions: a value of more than one is in _misfits, unless tables.columns chooses text",
    ]
    assert [each for each in said if text(each) not in page] == []
    series = viewer.get(f"/cdc/api/{place}/series").json()
    assert len(series["time"]) == len(series["rows"]) == len(series["inserts"]) > 50
    assert series["rows"][-1] == it["rows"]


def test_a_paused_table_is_as_old_as_what_it_holds_and_leads_to_its_runbook(viewer: TestClient, scene: Scene) -> None:
    scenes.filling(scene)
    scene.run(
        "update penstock.table set complete_through = (select upto_lsn from penstock.window where pipeline = %(name)s"
        " order by upto_lsn limit 1) where pipeline = %(name)s and state = 'paused'"
    )
    place = f"pipelines/{scene.name}/tables/16406"

    shown = viewer.get(f"/cdc/api/{place}").json()

    assert shown["freshness_seconds"] > shown["pipeline"]["freshness_seconds"] + 3600
    assert [each["title"] for each in shown["advice"]] == ["1 table is paused: schema-change"]
    assert 'href="/cdc/runbooks/schema-change"' in viewer.get(f"/cdc/{place}").text


def test_an_unknown_table_is_not_found(viewer: TestClient, scene: Scene) -> None:
    scene.bootstrap()

    for place in ("/cdc", "/cdc/api"):
        answer = viewer.get(f"{place}/pipelines/{scene.name}/tables/1")

        assert answer.status_code == 404
        assert "table-unknown" in answer.text


@pytest.mark.parametrize("place", ["/cdc", "/cdc/api"])
def test_what_can_be_no_name_and_no_oid_is_not_found(viewer: TestClient, scene: Scene, place: str) -> None:
    scene.bootstrap()

    for name in ("a%00b", "%00", "%ff", "a%0Ab", "x" * 9999, "%1b[2J", "A", "%F0%9F%92%A9"):
        for rest in ("", "/tables/1", "/series", "/tables/1/series"):
            assert viewer.get(f"{place}/pipelines/{name}{rest}").status_code == 404, (name, rest)
    for oid in (-1, 1 << 32, (1 << 32) + 16400, 1 << 63, 1 << 64, 10**4000):
        for rest in ("", "/series"):
            answer = viewer.get(f"{place}/pipelines/{scene.name}/tables/{oid}{rest}")
            assert answer.status_code == 404, (oid, rest)
    hostile = "q=%00%1b&sort=%00&page=-99999999999999999999&hours=24"
    for path in ("", f"/pipelines/{scene.name}", "/runbooks", "/runbooks/%00", "/docs/%00", "/static/%00"):
        assert viewer.get(f"{place}{path}?{hostile}").status_code in {200, 404}, path
    for hours in ("%00", "1e400", "9" * 5000, "0"):
        assert viewer.get(f"{place}/pipelines/{scene.name}?hours={hours}").status_code in {200, 422}, hours


def test_tables_are_searched_sorted_and_shown_by_the_page(viewer: TestClient, scene: Scene) -> None:
    scene.bootstrap()
    scene.past()
    scene.ledger.tables.save(scene.name, [scenes.facts(20000 + number, f"part_{number:03}") for number in range(120)])
    place = f"/cdc/pipelines/{scene.name}"

    def names(**asked: str) -> list[str]:
        return re.findall(r'tables/\d+">shop\.(\w+)<', viewer.get(place, params=asked).text)

    assert len(names()) == 50
    assert names(q="SHOP.ORDER") == ["order", "order_line"]
    assert names(q="part", sort="-name")[:2] == ["part_119", "part_118"]
    assert names(q="part", sort="name", page="3") == [f"part_{number}" for number in range(100, 120)]
    assert names(sort="-rows")[0] in scenes.TABLES
    assert names(q="nothing of the kind") == []
    assert names(page="99") == names(page="3"), "an address that leads too far leads to the last page"


def test_the_overview_puts_what_is_worst_first(viewer: TestClient, scene: Scene, pipelines: Path) -> None:
    scenes.lost(scene)
    (pipelines / "a_new_one.yaml").write_text('name: a_new_one\ntables: {include: ["shop.*"]}\n')

    shown = viewer.get("/cdc/api/pipelines").json()["pipelines"]
    (pipelines / "a_new_one.yaml").unlink()

    assert [(each["name"], each["grade"]) for each in shown] == [(scene.name, "critical"), ("a_new_one", "idle")]


def test_a_lost_slot_leads_to_its_runbook_and_to_the_recovery(viewer: TestClient, scene: Scene) -> None:
    scenes.lost(scene)

    page = viewer.get(f"/cdc/pipelines/{scene.name}").text

    assert "The pipeline is halted: slot-lost" in page
    assert 'href="/cdc/runbooks/slot-lost"' in page
    assert f'href="/dags/{scene.name}.recover"' in page


def test_what_was_met_leads_to_the_log_of_its_task(viewer: TestClient, scene: Scene) -> None:
    task = {"dag": f"{scene.name}.capture", "run_id": "manual__1+1", "task": "windows"}
    scenes.filling(scene)
    working = Scene(Ledger(scene.ledger.connection, task), scene.database, scene.name)
    working.event("capture-failing", "it failed", level="error")
    working.ledger.tables.stop(scene.name, {16402: Trouble.usual("divergence", "it diverges")})
    working.ledger.pipelines.halt(scene.name, slug="slot-ahead", reason="somebody read it")

    page = viewer.get(f"/cdc/pipelines/{scene.name}").text
    shown = viewer.get(f"/cdc/api/pipelines/{scene.name}").json()

    assert f'href="/dags/{task["dag"]}/runs/manual__1%2B1/tasks/windows"' in page
    assert [each["task"] for each in shown["events"] if each["message"] == "it failed"] == [task]
    assert shown["pipeline"]["halted_by"] == task
    steps = [step for each in shown["advice"] for step in each["steps"]]
    assert sum(step["task"] == task for step in steps) == 2, "that of the halt, and that of the pause"
    conf = {step["dag"].rpartition(".")[2]: step["conf"] for step in steps if step["conf"]}
    assert conf["recover"] == {"dry_run": False}
    assert conf["resync"] == {"tables": ["shop.audit_log"], "dry_run": False}
    assert '{"dry_run": false}' in page


def test_the_lake_is_fresh_as_long_as_what_it_lacks_holds_no_change(viewer: TestClient, scene: Scene) -> None:
    scene.bootstrap()
    scene.past(windows=30, behind=600)
    scene.run("update penstock.window set rows = 0 where pipeline = %(name)s")

    fresh = viewer.get(f"/cdc/api/pipelines/{scene.name}").json()["pipeline"]
    scene.run(
        "update penstock.window set rows = 1 where pipeline = %(name)s and from_lsn ="
        " (select max(lsn) from penstock.cut where pipeline = %(name)s)"
    )
    stale = viewer.get(f"/cdc/api/pipelines/{scene.name}").json()["pipeline"]

    assert fresh["cut_lsn"] == stale["cut_lsn"]
    assert fresh["freshness_seconds"] < 120 < 600 < stale["freshness_seconds"]
    assert (fresh["unmerged_windows"], stale["unmerged_windows"]) == (0, 1)


def test_a_cut_of_an_older_era_is_shown_and_nothing_is_measured_against_it(viewer: TestClient, scene: Scene) -> None:
    scene.bootstrap()
    scene.past(windows=30, behind=600)
    old = viewer.get(f"/cdc/api/pipelines/{scene.name}").json()["pipeline"]
    scene.run("update penstock.pipeline set era = 2, consistent_point = '0/1', position = '0/2' where name = %(name)s")
    scene.run(
        "insert into penstock.window (pipeline, era, from_lsn, upto_lsn, attempt, state, rows, settings_digest, staged_at)"
        " values (%(name)s, 2, '0/1', '0/2', 'attempt', 'staged', 7, 'settings', now())"
    )

    shown = viewer.get(f"/cdc/api/pipelines/{scene.name}").json()

    assert shown["pipeline"]["cut_lsn"] == old["cut_lsn"]
    assert shown["pipeline"]["freshness_seconds"] is None
    assert (shown["pipeline"]["unmerged_windows"], shown["pipeline"]["unmerged_changes"]) == (1, 7)
    assert shown["windows"][0]["upto_lsn"] == "0/2"


def test_a_chart_has_few_points_whatever_its_span(viewer: TestClient, scene: Scene) -> None:
    scene.bootstrap()
    scene.past(windows=5000, every=500)
    scene.samples(count=8640)

    for hours in (1, 24, 720):
        series = viewer.get(f"/cdc/api/pipelines/{scene.name}/series", params={"hours": hours}).json()

        assert 1 <= len(series["slot_time"]) <= 301
        assert 1 <= len(series["capture_time"]) <= 301
        assert len(series["unread_bytes"]) == len(series["retained_bytes"]) == len(series["slot_time"])


def test_the_charts_of_the_lake_have_its_peaks_sums_and_last_sizes(viewer: TestClient, scene: Scene) -> None:
    scene.bootstrap()
    scene.past()
    scene.lake_samples(count=8640)
    scene.run(
        "update penstock.lake_sample set worst_seconds = 777777 where (pipeline, at) ="
        " (select pipeline, max(at) - interval '9 days' from penstock.lake_sample where pipeline = %(name)s group by 1)"
    )

    month = viewer.get(f"/cdc/api/pipelines/{scene.name}/series", params={"hours": 720}).json()

    assert 1 <= len(month["lake_time"]) <= 301
    assert max(month["behind_worst_seconds"]) == 777777
    assert sum(month["cuts"]) == pytest.approx(8640 * 1.5, abs=4)
    assert sum(filter(None, month["merge_cpu_seconds"])) == pytest.approx(8639 * 21.5, abs=60)
    assert month["lake_bytes"][-1] == 3_000_000_000 + 8639 * 5_000_000


def test_a_chart_keeps_the_peak_of_every_step(viewer: TestClient, scene: Scene) -> None:
    scene.bootstrap()
    scene.past()
    scene.samples(count=8640)
    scene.run(
        "update penstock.slot_sample set unread = 77777777777 where number ="
        " (select min(number) + 4000 from penstock.slot_sample where pipeline = %(name)s)"
    )

    series = viewer.get(f"/cdc/api/pipelines/{scene.name}/series", params={"hours": 720}).json()

    assert max(series["unread_bytes"]) == 77777777777


def test_an_unknown_pipeline_is_not_found(viewer: TestClient, scene: Scene) -> None:
    answer = viewer.get("/cdc/api/pipelines/nobody")

    assert (answer.status_code, answer.json()["slug"]) == (404, "config-invalid")
    assert viewer.get("/cdc/pipelines/nobody").status_code == 404


def test_a_pipeline_without_its_file_is_still_shown(viewer: TestClient, scene: Scene, pipelines: Path) -> None:
    scenes.healthy(scene)
    (pipelines / f"{scene.name}.yaml").rename(pipelines / "other.yaml")
    (pipelines / "other.yaml").write_text('name: other\ntables: {include: ["shop.*"]}\n')

    overview = viewer.get("/cdc/api/pipelines").json()["pipelines"]
    page = viewer.get(f"/cdc/pipelines/{scene.name}").text
    (pipelines / "other.yaml").unlink()

    assert {each["name"]: each["has_file"] for each in overview} == {scene.name: False, "other": True}
    assert "No pipeline file defines this pipeline" in page


def test_a_ledger_that_does_not_answer_hides_no_other(viewer: TestClient, scene: Scene, pipelines: Path) -> None:
    scenes.healthy(scene)
    (pipelines / "far.yaml").write_text('name: far\ntables: {include: ["s.*"]}\nledger: {connection: not_defined}\n')

    overview = viewer.get("/cdc/api/pipelines").json()
    page = viewer.get("/cdc/pipelines/far")
    (pipelines / "far.yaml").unlink()

    assert [each["name"] for each in overview["pipelines"]] == [scene.name]
    assert [(each["slug"], each["pipelines"]) for each in overview["problems"]] == [("connection-missing", ["far"])]
    assert page.status_code == 503
    assert "connection-missing" in page.text


def test_a_pipeline_file_that_cannot_be_read_is_named(viewer: TestClient, pipelines: Path) -> None:
    (pipelines / "bad.yaml").write_text("name: bad\ntabels: {}\n")

    overview = viewer.get("/cdc/api/pipelines").json()
    (pipelines / "bad.yaml").unlink()

    assert "did you mean 'tables'?" in overview["problems"][0]["message"]


def test_what_the_source_named_is_shown_as_text(viewer: TestClient, scene: Scene) -> None:
    scene.bootstrap()
    scene.past()
    scene.event("dag-failed", "<script>alert(1)</script> \x1b[2J \u202eevil")

    page = viewer.get(f"/cdc/pipelines/{scene.name}").text

    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "\\x1b[2J \\u202eevil" in page


def test_the_page_may_load_nothing_from_elsewhere(viewer: TestClient, scene: Scene) -> None:
    scenes.healthy(scene)
    for place in ("/cdc/", f"/cdc/pipelines/{scene.name}", "/cdc/runbooks/slot-lost"):
        answer = viewer.get(place)

        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert not re.findall(r'(?:src|href)="(?:https?:)?//', answer.text)
        for asset in re.findall(r'(?:src|href)="(/cdc/static/[^"]+)"', answer.text):
            assert viewer.get(asset).status_code == 200, asset


def test_runbooks_are_found_by_their_name_and_their_words(viewer: TestClient) -> None:
    def names(**asked: str) -> list[str]:
        return re.findall(r'class="slug" href="/cdc/runbooks/([\w-]+)"', viewer.get("/cdc/runbooks", params=asked).text)

    assert set(names()) == set(CONDITIONS), "each once, one of a wrong call too"
    assert len(names()) == len(CONDITIONS)
    assert names(q="slot LOST")[0] == "slot-lost", "a name that holds the words comes first"
    assert "slot-lost" in names(q="max_slot_wal_keep_size"), "words of its text count, too"
    assert names(q="zzzz") == []
    assert "No runbook holds these words" in viewer.get("/cdc/runbooks?q=zzzz").text


def documents() -> list[str]:
    docs = Path(__file__).parents[2] / "docs"
    return [
        f"{place}/{path.stem}"
        for place in ("docs", "runbooks")
        for path in (docs if place == "docs" else docs / place).glob("*.md")
    ]


@pytest.mark.parametrize("document", documents())
def test_every_document_can_be_read_in_the_page_and_its_links_lead_somewhere(viewer: TestClient, document: str) -> None:
    answer = viewer.get(f"/cdc/{document}")

    assert answer.status_code == 200
    for link in re.findall(r'<a href="([^"]+)"', answer.text.split("<article", 1)[1]):
        there, _, anchor = urljoin(f"/cdc/{document}", link).partition("#")
        found = viewer.get(there)

        assert found.status_code == 200, link
        assert not anchor or f' id="{anchor}"' in found.text, link


def test_no_document_is_a_way_to_another_file(viewer: TestClient) -> None:
    for name in ("runbooks/..%2Fconcepts", "docs/..%2FREADME", "docs/nothing", "docs/%2Fetc%2Fpasswd"):
        assert viewer.get(f"/cdc/{name}").status_code == 404


def test_the_last_maintenance_is_shown_with_what_it_found_and_left(viewer: TestClient, scene: Scene) -> None:
    scenes.healthy(scene)
    before = Figures(120, 3 << 30, 1000, 100, 40, 400, 210)
    done = TableReport(("shop", "sales", "order"), 1, 8, before, replace(before, files=7, delete_files=0), 9.5)
    left = TableReport(("shop", "sales", "taken"), 2, 8, None, None, 0.0, left="it has commits of another writer")
    lake = MaintenanceResult("shop", "a", (done, left), (TableFolder("shop._penstock_era1.sales", "order", "x"),), 9.6)
    report = {"lake": asdict(lake), "landing": {"windows": 12, "copies": 1, "bytes": 5 << 20}}
    scene.run(
        "insert into penstock.maintenance (pipeline, attempt, started_at, ended_at, dry_run, report)"
        " values (%(name)s, 'a', now() - interval '3 hours', now() - interval '2 hours', false, %(report)s)",
        report=Jsonb(report),
    )

    page = text(viewer.get(f"/cdc/pipelines/{scene.name}").text)
    for shown in (
        "Maintenance done 2 h",
        "120 → 7",
        "100 → 0",
        "12 windows and 1 copy, 5.0 MiB",
        "commits of another",
        "dropped: shop._penstock_era1.sales.order",
    ):
        assert shown in page.replace("\u202f", " "), shown
    shown = viewer.get(f"/cdc/api/pipelines/{scene.name}").json()["last_maintenance"]
    assert shown["report"]["lake"]["tables"][0]["after"]["files"] == 7

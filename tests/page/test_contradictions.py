"""No card, tile or line of the page says what another one denies."""

import re
from html import unescape

import pytest
from fastapi.testclient import TestClient

from penstock.errors import NoLedgerError
from penstock.ledger import Ledger
from penstock.page import format
from tests.page import scenes
from tests.page.conftest import as_airflow_has_it, connection_to
from tests.page.scenes import START, Scene

NOTHING = format.size(None)


def tiles(viewer: TestClient, place: str) -> dict[str, tuple[str, str]]:
    """Return what each tile shows, and its note."""
    html = viewer.get(f"/cdc/{place}").text
    found = re.findall(r"<dt>([^<]+)</dt>\s*<dd>([^<]*)</dd>\s*(?:<dd class=\"note\">([^<]*)</dd>)?", html)
    return {label: (unescape(value), unescape(note)) for label, value, note in found}


def titles(viewer: TestClient, scene: Scene) -> list[str]:
    return [each["title"] for each in viewer.get(f"/cdc/api/pipelines/{scene.name}").json()["advice"]]


def test_after_a_first_copy_no_slot_was_made_anew(viewer: TestClient, scene: Scene) -> None:
    scene.register()
    scene.ledger.pipelines.intend_slot(
        scene.name, system_identifier=1, timeline=1, database=scene.name, publication_oid=16400, made=True
    )
    (now,) = scene.database.execute("select now()")[0]
    scene.ledger.pipelines.record_slot(scene.name, consistent_point=START, source_time=now)
    scene.ledger.pipelines.finish_bootstrap(scene.name)
    scene.run(
        "insert into penstock.cut (pipeline, lsn, attempt, tables, cuts_snapshot_id) values (%(name)s, %(start)s, 'a', '[]', 1)"
    )

    assert not [title for title in titles(viewer, scene) if "cut" in title]
    assert tiles(viewer, f"pipelines/{scene.name}")["Lake is behind by"][1].startswith("complete as of ")


def test_a_cut_of_an_older_era_is_not_called_no_cut(viewer: TestClient, scene: Scene) -> None:
    scenes.healthy(scene)
    scene.run("update penstock.cut set era = 7 where pipeline = %(name)s")

    assert tiles(viewer, f"pipelines/{scene.name}")["Lake is behind by"] == (
        NOTHING,
        "no cut since the slot was made anew",
    )
    assert "There is no cut since the slot was made anew" in titles(viewer, scene)


@pytest.mark.parametrize("slug", ["slot-missing", "slot-dropped"])
def test_a_slot_that_is_gone_has_no_figures(viewer: TestClient, scene: Scene, slug: str) -> None:
    scenes.healthy(scene)
    shown = tiles(viewer, f"pipelines/{scene.name}")
    assert shown["Unread"][0] != NOTHING
    assert ", seen " in shown["Unread"][1], "what was seen of a slot is as old as that look"

    if slug == "slot-missing":
        scene.alarm(slug, "critical", "expected a slot, but the server has none")
    else:
        scene.ledger.pipelines.halt(scene.name, slug=slug, reason="slot health dropped it.")

    shown = tiles(viewer, f"pipelines/{scene.name}")
    assert {shown["Unread"], shown["Retained"]} == {(NOTHING, "the source has no such slot")}
    page = viewer.get(f"/cdc/pipelines/{scene.name}").text
    assert f"<h2>Slot {scene.slot}" not in page, "nor is it being read"


def test_a_table_of_which_a_share_is_equal_is_not_called_never_verified(viewer: TestClient, scene: Scene) -> None:
    scenes.changed_table(scene)
    scene.run("update penstock.table set verified_through = null, verified_at = null where pipeline = %(name)s")
    place = f"pipelines/{scene.name}/tables/{scenes.ORDER}"

    shown = tiles(viewer, place)["Verified"]

    assert shown[0].endswith(" ago")
    assert shown[1] == "equal: share 4 of 4; not all of its rows yet"
    assert tiles(viewer, place.replace(str(scenes.ORDER), "16401"))["Verified"][0] == "never"


def test_values_that_did_not_fit_are_not_said_to_be_all_there(viewer: TestClient, scene: Scene) -> None:
    scenes.changed_table(scene)

    page = viewer.get(f"/cdc/pipelines/{scene.name}/tables/{scenes.ORDER}").text

    assert "each time that a merge wrote one; the texts of rows that are still there stand in" in page


def test_a_maintenance_that_was_refused_is_not_at_work(viewer: TestClient, scene: Scene) -> None:
    scenes.healthy(scene)
    place = f"/cdc/pipelines/{scene.name}"
    scene.ledger.maintenance.begin(scene.name, "a", dry_run=False)
    assert "at work, or killed" in viewer.get(place).text

    scene.ledger.maintenance.fail(scene.name, "a", "spark-failed")

    assert "at work, or killed" not in viewer.get(place).text
    assert viewer.get(f"/cdc/api/pipelines/{scene.name}").json()["last_maintenance"]["error"] == "spark-failed"
    assert scene.ledger.health.late_work(scene.name).maintained_at is None, "it did not maintain anything"


def test_before_the_first_bootstrap_the_page_says_what_to_do(
    viewer: TestClient, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ledger's schema is made by the first bootstrap."""
    with scene.database.server.temporary_database("no_ledger") as empty:
        with pytest.raises(NoLedgerError):
            Ledger(connection_to(empty)).version()
        for name, value in as_airflow_has_it(empty).items():
            monkeypatch.setenv(name, value)

        overview = viewer.get("/cdc/")
        page = viewer.get(f"/cdc/pipelines/{scene.name}")

    assert (overview.status_code, page.status_code) == (200, 200)
    assert "cannot be shown" not in overview.text + page.text
    assert scene.name in overview.text
    assert "Not started yet" in page.text
    assert f"penstock start {scene.name}" in page.text

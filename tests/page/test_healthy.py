"""When the page calls a pipeline healthy: every state that is not, one by one, with the link that mends it."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from tests.page import scenes
from tests.page.airflow_rows import forget, make_dags
from tests.page.scenes import Scene


def well(scene: Scene) -> None:
    scene.bootstrap()
    scene.past()
    scene.samples(count=10)


def without_a_cut(scene: Scene) -> None:
    well(scene)
    scene.run("delete from penstock.cut where pipeline = %(name)s")


def with_a_cut_of_an_older_era(scene: Scene) -> None:
    well(scene)
    scene.run("update penstock.cut set era = 7 where pipeline = %(name)s")


def without_dags(scene: Scene) -> None:
    well(scene)
    make_dags(scene.name, missing=["merge"])


def paused(verb: str) -> Callable[[Scene], None]:
    def make(scene: Scene) -> None:
        well(scene)
        make_dags(scene.name, paused=[verb])

    return make


def never_looked_at(scene: Scene) -> None:
    scene.bootstrap()
    scene.past()


def not_looked_at_lately(scene: Scene) -> None:
    well(scene)
    scene.run("update penstock.slot_sample set at = at - interval '40 minutes' where pipeline = %(name)s")


def stale_with_changes_landed(scene: Scene) -> None:
    scene.bootstrap()
    scene.past(behind=45 * 60)
    scene.samples(count=10)


def stale_without(scene: Scene) -> None:
    well(scene)
    scene.run(
        "update penstock.window set rows = 0, source_time = source_time - interval '1 hour' where pipeline = %(name)s"
    )
    scene.run(scenes.CLOCK)


STATES = [
    (without_a_cut, "There is no cut yet", "merge"),
    (with_a_cut_of_an_older_era, "There is no cut since the slot was made anew", "merge"),
    (paused("capture"), "{name}.capture is paused", "capture"),
    (paused("merge"), "{name}.merge is paused", "merge"),
    (paused("slot_health"), "{name}.slot_health is paused", "slot_health"),
    (never_looked_at, "The slot was not checked yet", "slot_health"),
    (not_looked_at_lately, "The slot is not checked", "slot_health"),
    (stale_with_changes_landed, "The lake is stale", "merge"),
    (stale_without, "The lake is stale", "capture"),
]


@pytest.mark.parametrize(("make", "title", "verb"), STATES)
def test_a_running_pipeline_that_lacks_something_is_not_healthy_and_leads_to_what_mends_it(
    viewer: TestClient, scene: Scene, make: Callable[[Scene], None], title: str, verb: str
) -> None:
    make(scene)

    shown = viewer.get(f"/cdc/api/pipelines/{scene.name}").json()
    page = viewer.get(f"/cdc/pipelines/{scene.name}").text
    overview = viewer.get("/cdc/").text

    assert (shown["pipeline"]["state"], shown["pipeline"]["grade"]) == ("running", "warn")
    assert [each["message"] for each in shown["pipeline"]["lacks"]] == [title.format(name=scene.name)]
    assert shown["advice"][0]["title"] == title.format(name=scene.name)
    assert ">healthy<" not in page
    for html in (page, overview):
        assert f'href="/dags/{scene.name}.{verb}"' in html


def test_it_is_healthy_when_nothing_is_lacking(viewer: TestClient, scene: Scene) -> None:
    well(scene)

    shown = viewer.get(f"/cdc/api/pipelines/{scene.name}").json()

    assert (shown["pipeline"]["grade"], shown["pipeline"]["lacks"]) == ("ok", [])
    assert ">healthy<" in viewer.get(f"/cdc/pipelines/{scene.name}").text


def test_a_dag_that_airflow_does_not_have_is_missing(viewer: TestClient, scene: Scene) -> None:
    without_dags(scene)

    (lack,) = viewer.get(f"/cdc/api/pipelines/{scene.name}").json()["pipeline"]["lacks"]

    assert lack["message"] == f"There is no DAG {scene.name}.merge"


def test_every_dag_that_is_missing_is_named(viewer: TestClient, scene: Scene) -> None:
    well(scene)
    forget(scene.name)

    lacks = viewer.get(f"/cdc/api/pipelines/{scene.name}").json()["pipeline"]["lacks"]

    assert [each["message"].rpartition(".")[2] for each in lacks] == ["capture", "merge", "slot_health"]


def test_what_an_alarm_says_is_not_said_twice(viewer: TestClient, scene: Scene) -> None:
    scenes.filling(scene)

    shown = viewer.get(f"/cdc/api/pipelines/{scene.name}").json()

    assert "capture-paused" in [each["slug"] for each in shown["pipeline"]["lacks"]]
    assert sum("paused" in each["title"] and "capture" in each["title"] for each in shown["advice"]) == 1


def test_the_limit_of_freshness_is_the_pipelines_own(viewer: TestClient, scene: Scene, pipelines: Path) -> None:
    well(scene)
    file = pipelines / f"{scene.name}.yaml"
    file.write_text(f'{file.read_text()}health: {{freshness: {{warn: "1m"}}}}\n')

    (lack,) = viewer.get(f"/cdc/api/pipelines/{scene.name}").json()["pipeline"]["lacks"]

    assert lack["slug"] == "lake-stale"
    assert re.search(r"the limit is 1 ?min|60 s", lack["next"])


def test_slot_health_without_a_schedule_watches_nothing(viewer: TestClient, scene: Scene, pipelines: Path) -> None:
    well(scene)
    file = pipelines / f"{scene.name}.yaml"
    file.write_text(f"{file.read_text()}health: {{schedule: null}}\n")

    lacks = viewer.get(f"/cdc/api/pipelines/{scene.name}").json()["pipeline"]["lacks"]

    assert [each["message"] for each in lacks] == ["Slot health has no schedule"]

"""Work under way, as the page shows it: how far it is, how fast, how long it still takes, and for whom it waits."""

from fastapi.testclient import TestClient

from tests.page import scenes
from tests.page.airflow_rows import forget, make_dags, make_task
from tests.page.scenes import Scene
from tests.page.test_page import text


def note(scene: Scene, run: str, **changes: object) -> None:
    """What a task of the DAG bootstrap has said: 30 of 40 ranges now, 10 a minute ago."""
    values = {"run": run, "done": 30, "rows": 3_000_000, "seconds": 60} | changes
    scene.run(
        "insert into penstock.work (pipeline, dag, run_id, task, what, done, total, rows, first_done, first_rows, started_at)"
        " values (%(name)s, %(name)s || '.bootstrap', %(run)s, 'copy', 'copying 6 tables', %(done)s, 40, %(rows)s, 10, 1000000,"
        " clock_timestamp() - make_interval(secs => %(seconds)s))",
        **values,
    )


def test_a_copy_shows_its_share_rows_rate_and_time_left(viewer: TestClient, scene: Scene) -> None:
    scenes.starting(scene)
    make_dags(scene.name)
    run = make_task(f"{scene.name}.bootstrap", "copy", "running")
    note(scene, run)

    (work,) = viewer.get(f"/cdc/api/pipelines/{scene.name}").json()["work"]
    page = text(viewer.get(f"/cdc/pipelines/{scene.name}").text).replace("\u202f", " ")

    assert (work["what"], work["share"], work["rows"]) == ("copying 6 tables", 0.75, 3_000_000)
    assert round(work["rows_per_second"] / 1000) == 33, "two million rows in a minute"
    assert round(work["left_seconds"]) == 30, "ten ranges of forty, at twenty a minute"
    assert "75 % 3 000 000" in page


def test_a_work_that_has_just_begun_has_no_rate_yet(viewer: TestClient, scene: Scene) -> None:
    scenes.starting(scene)
    make_dags(scene.name)
    note(scene, make_task(f"{scene.name}.bootstrap", "copy", "running"), seconds=1)

    (work,) = viewer.get(f"/cdc/api/pipelines/{scene.name}").json()["work"]

    assert (work["share"], work["rows_per_second"], work["left_seconds"]) == (0.75, None, None)


def test_what_a_killed_task_has_left_is_not_shown(viewer: TestClient, scene: Scene) -> None:
    scenes.starting(scene)
    make_dags(scene.name)
    note(scene, "a run that is over")

    assert viewer.get(f"/cdc/api/pipelines/{scene.name}").json()["work"] == []


def test_a_task_that_waits_for_a_pool_names_who_holds_it(viewer: TestClient, scene: Scene) -> None:
    scenes.healthy(scene)
    make_dags("stranger")
    make_task("stranger.job", "long", "running", pool="work_pool")
    holder = make_task(f"{scene.name}.merge", "spark", "running", pool="work_pool")
    make_task(f"{scene.name}.maintain", "maintain", "scheduled", pool="work_pool")

    running, waiting = viewer.get(f"/cdc/api/pipelines/{scene.name}").json()["work"]
    page = text(viewer.get(f"/cdc/pipelines/{scene.name}").text)
    forget("stranger")

    assert (running["state"], running["task"]["task"]) == ("runs", "spark")
    assert (waiting["state"], waiting["pool"]) == ("waits", "work_pool")
    assert waiting["held_by"] == [{"dag": f"{scene.name}.merge", "run_id": holder, "task": "spark"}]
    assert waiting["held_by_others"] == 1, "a DAG that is no pipeline's is not named"
    assert f"held by {scene.name}.merge \u203a spark and 1 task of other DAGs" in page


def test_a_task_that_is_due_while_its_pool_has_room_waits_for_nobody(viewer: TestClient, scene: Scene) -> None:
    scenes.healthy(scene)
    make_task(f"{scene.name}.maintain", "maintain", "scheduled", pool="free_pool")

    (work,) = viewer.get(f"/cdc/api/pipelines/{scene.name}").json()["work"]

    assert (work["state"], work["pool"], work["held_by"]) == ("waits", None, [])

"""Every alarm of the catalogue: brought about, received over HTTP and by mail, its links answered by Airflow, and closed."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from penstock.conditions import ALARMS
from penstock.errors import SourceError
from tests.airflow_ui import BASE, Get, broken, links, viewer
from tests.flow.health.alarm_scenes import SCENES, STAGES
from tests.flow.health.conftest import Desk, NewDesk
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def get(airflow_home: Path) -> Iterator[Get]:
    """A function that asks Airflow's API server, to which the alerts' links lead."""
    with viewer() as get:
        yield get


def test_every_alarm_has_a_scene() -> None:
    assert set(SCENES) == set(ALARMS)
    assert set(STAGES) <= set(SCENES)


@pytest.mark.slow
@pytest.mark.parametrize("slug", ALARMS)
def test_an_alarm_arrives_leads_somewhere_and_ends(
    slug: str, get: Get, desk_of: NewDesk, request: pytest.FixtureRequest
) -> None:
    stage = request.getfixturevalue(STAGES.get(slug, "watched"))
    watched, *others = stage if isinstance(stage, tuple) else (stage,)
    desk = desk_of(watched)

    scene = SCENES[slug](desk, *others)
    next(scene)
    opened = received(desk, slug, "opened")
    assert links(opened)["runbook"] == f"{BASE}/cdc/runbooks/{slug}"
    assert links(opened)["page"] == f"{BASE}/plugin/cdc#{desk.watched.env.name}"
    assert broken(get, opened) == {}

    assert next(scene, "ended") == "ended"
    assert broken(get, received(desk, slug, "closed")) == {}


def received(desk: Desk, slug: str, happening: str) -> str:
    """Check as the DAG does until the alarm has come on both ways; return the message."""

    def said() -> dict[str, str]:
        posts = {post["title"]: post["message"] for post in desk.hook.posts}
        return {
            title: text
            for title, text in posts.items()
            if title.split()[2] == slug and (title.split()[1] == "closed:") == (happening == "closed")
        }

    def arrived() -> bool:
        if not said():
            with suppress(SourceError):  # that is an alarm as well
                desk.check()
        return bool(said())

    wait_until(arrived, f"{slug} is {happening}", seconds=120, pause=0.3)
    ((title, text),) = said().items()
    mails = dict(desk.mailbox.mails)
    assert [line for line in text.splitlines() if line not in mails[title]] == [], "the mail says the same"
    return text

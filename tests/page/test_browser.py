"""The page in headless Chromium (Debian's): what a person sees, in light and dark, and that it stays current.

Pictures of every scene are kept in `.local/page/` to be looked at.
"""

from __future__ import annotations

import re
import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from stack.paths import Project
from tests.page import scenes
from tests.page.scenes import Scene
from tests.waiting import wait_until

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PICTURES = Project.here().local / "page"
SCHEMES = ("light", "dark")


@pytest.fixture(scope="module")
def address(airflow_app: Any) -> Iterator[str]:
    """Airflow's API server on a port of its own."""
    import uvicorn  # noqa: PLC0415  # only for who has a browser

    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(airflow_app, log_level="warning", lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    wait_until(lambda: server.started, "the server listens")
    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    server.should_exit = True
    thread.join()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright  # noqa: PLC0415

    program = shutil.which("chromium")
    assert program, "expected the program chromium; Debian: apt-get install chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture
def narrow(browser: Browser, address: str, login: Callable[[str], str]) -> Iterator[BrowserContext]:
    """The same on a phone."""
    context = browser.new_context(viewport={"width": 390, "height": 844})
    context.add_cookies([{"name": "_token", "value": login("viewer"), "url": address}])
    yield context
    context.close()


@pytest.fixture
def context(browser: Browser, address: str, login: Callable[[str], str]) -> Iterator[BrowserContext]:
    """A browser in which a viewer has logged in."""
    context = browser.new_context(viewport={"width": 1360, "height": 900})
    context.add_cookies([{"name": "_token", "value": login("viewer"), "url": address}])
    yield context
    context.close()


def look(context: BrowserContext, url: str, name: str, scheme: str) -> Page:
    """Open a page, keep its picture, and refuse errors, requests to elsewhere and anything wider than the window."""
    page = context.new_page()
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    wrong: list[str] = []
    page.on("console", lambda message: wrong.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on(
        "request",
        lambda request: None if request.url.startswith(url.partition("/cdc/")[0]) else wrong.append(request.url),
    )
    page.goto(url)
    page.locator(".plot:empty").first.wait_for(state="detached")
    PICTURES.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=PICTURES / f"{name}-{scheme}.png", full_page=True)
    assert wrong == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    return page


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("make", [scenes.healthy, scenes.filling, scenes.lost, scenes.starting])
def test_a_pipeline_is_shown(
    context: BrowserContext, address: str, scene: Scene, make: Callable[[Scene], None], scheme: str
) -> None:
    make(scene)

    page = look(context, f"{address}/cdc/pipelines/{scene.name}", make.__name__, scheme)

    assert page.locator(".advice").count() >= 1
    if make is not scenes.starting:
        assert page.locator("figure[data-chart]").count() == 7
        assert page.locator(".uplot canvas").count() >= 3


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_table_is_shown(context: BrowserContext, address: str, scene: Scene, scheme: str) -> None:
    scenes.changed_table(scene)

    page = look(context, f"{address}/cdc/pipelines/{scene.name}/tables/{scenes.ORDER}", "table", scheme)

    assert page.locator(".uplot canvas").count() == 3
    assert page.get_by_role("heading", name="Schema changes").is_visible()


REACHED = """() => {
  const at = document.activeElement;
  if (!at || at === document.body) return null;
  const name = (at.getAttribute('aria-label') || [...(at.labels || [])].map((each) => each.textContent).join(' ')
    || at.textContent || at.title).trim();
  const style = getComputedStyle(at);
  at.dataset.reached = '';
  return {name, tag: at.outerHTML.slice(0, 120), outlined: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0};
}"""
UNREACHED = """() => [...document.querySelectorAll('a[href], button, input, select, summary, [tabindex="0"]')]
  .filter((each) => each.checkVisibility() && !each.disabled && !('reached' in each.dataset))
  .map((each) => each.outerHTML.slice(0, 120))"""


@pytest.mark.parametrize("place", ["", "pipelines/{name}", "pipelines/{name}/tables/{oid}", "runbooks"])
def test_all_is_reached_by_the_keyboard_is_seen_there_and_has_a_name(
    context: BrowserContext, address: str, scene: Scene, place: str
) -> None:
    scenes.changed_table(scene)
    page = look(context, f"{address}/cdc/{place.format(name=scene.name, oid=scenes.ORDER)}", "before", "light")
    seen = []
    for _ in range(400):
        page.keyboard.press("Tab")
        reached = page.evaluate(REACHED)
        if reached is None:
            break
        seen.append(reached)

    assert seen
    assert [each["tag"] for each in seen if not each["name"]] == []
    assert [each["tag"] for each in seen if not each["outlined"]] == []
    assert page.evaluate(UNREACHED) == []


def test_charts_are_told_in_words_and_lists_say_how_they_are_sorted(
    context: BrowserContext, address: str, scene: Scene
) -> None:
    scenes.healthy(scene)
    page = look(context, f"{address}/cdc/pipelines/{scene.name}?sort=-rows", "before", "light")

    drawn = page.locator(".plot:has(canvas)")
    assert page.get_by_role("img", name=re.compile("newest .*, highest ")).count() == drawn.count() > 0
    assert page.get_by_role("columnheader", name="Rows", exact=True).first.get_attribute("aria-sort") == "descending"


def test_a_table_is_found_in_the_list_and_leads_to_its_page(
    context: BrowserContext, address: str, scene: Scene
) -> None:
    scenes.healthy(scene)
    page = look(context, f"{address}/cdc/pipelines/{scene.name}?hours=6", "before", "light")

    page.get_by_label("Search tables").fill("order_line")
    page.get_by_role("button", name="Search").click()
    page.get_by_text("1 found").wait_for()
    page.get_by_role("link", name="shop.order_line").click()
    page.get_by_role("heading", name="shop.order_line").wait_for()

    assert page.go_back() is not None
    assert "hours=6" in page.url


@pytest.mark.parametrize("scheme", SCHEMES)
def test_an_empty_install_is_shown(context: BrowserContext, address: str, scheme: str) -> None:
    page = look(context, f"{address}/cdc/", "empty", scheme)

    assert page.get_by_text("No pipeline yet").is_visible()


@pytest.mark.parametrize("scheme", SCHEMES)
def test_all_pipelines_are_shown(
    context: BrowserContext, address: str, scene: Scene, pipelines: Path, scheme: str
) -> None:
    others = {"billing": scenes.lost, "crm": scenes.filling, "erp": scenes.starting, "web": None}
    made = [Scene(scene.ledger, scene.database, name) for name in others]
    scenes.healthy(scene)
    for each, make in zip(made, others.values(), strict=True):
        (pipelines / f"{each.name}.yaml").write_text(f'name: {each.name}\ntables: {{include: ["shop.*"]}}\n')
        if make:
            make(each)

    page = look(context, f"{address}/cdc/", "overview", scheme)

    names = page.locator("tbody th a").all_text_contents()
    for each in made:
        (pipelines / f"{each.name}.yaml").unlink()
        each.database.execute("delete from penstock.pipeline where name = %s", each.name)
    assert names == ["billing", "crm", scene.name, "erp", "web"]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_runbook_is_shown(context: BrowserContext, address: str, scheme: str) -> None:
    page = look(context, f"{address}/cdc/runbooks/slot-lost", "runbook", scheme)

    assert page.get_by_role("heading", name="What to do").is_visible()


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_page_fits_a_phone(narrow: BrowserContext, address: str, scene: Scene, scheme: str) -> None:
    scenes.changed_table(scene)

    for name, place in (
        ("overview", ""),
        ("pipeline", f"pipelines/{scene.name}"),
        ("table", f"pipelines/{scene.name}/tables/{scenes.ORDER}"),
        ("runbook", "runbooks/slot-lost"),
    ):
        page = look(narrow, f"{address}/cdc/{place}", f"narrow-{name}", scheme)
        assert page.evaluate("innerWidth") == 390


def test_values_change_without_a_reload(context: BrowserContext, address: str, scene: Scene) -> None:
    scenes.healthy(scene)
    page = look(context, f"{address}/cdc/pipelines/{scene.name}", "before", "light")
    page.evaluate("window.stays = true")
    page.locator('[data-span="1"]').click()

    scene.alarm("slot-retained", "critical", "The slot keeps more than the limit.")
    page.get_by_role("heading", name="slot-retained").wait_for(timeout=30_000)

    assert page.evaluate("window.stays")
    assert re.search(r"hours=1\b", page.url)
    assert page.locator(".uplot canvas").count() == 7


def test_a_login_that_has_ended_is_said(context: BrowserContext, address: str, scene: Scene) -> None:
    scenes.healthy(scene)
    page = look(context, f"{address}/cdc/pipelines/{scene.name}", "before", "light")

    context.clear_cookies()
    page.get_by_text("Your login has ended").wait_for(timeout=30_000)

    assert page.get_by_role("heading", name="Tables").is_visible()


@pytest.mark.parametrize("scheme", SCHEMES)
def test_airflow_has_the_page_in_its_menu_and_shows_it_in_its_own_colours(
    context: BrowserContext, address: str, scene: Scene, scheme: str
) -> None:
    scenes.filling(scene)
    context.add_init_script(f"localStorage.setItem('theme', '{scheme}')")
    page = context.new_page()
    elsewhere: list[str] = []
    page.on(
        "request",
        lambda request: (
            None if request.url.startswith((address, f"blob:{address}", "data:")) else elsewhere.append(request.url)
        ),
    )

    page.goto(f"{address}/")
    page.get_by_role("link", name="CDC").click()
    frame = page.frame_locator("iframe")
    frame.get_by_role("link", name=scene.name).click()
    frame.locator(".uplot canvas").nth(2).wait_for()
    page.screenshot(path=PICTURES / f"airflow-{scheme}.png")

    assert "/plugin/cdc" in page.url
    assert frame.locator("html").get_attribute("data-theme") == scheme
    assert elsewhere == []

    frame.get_by_role("link", name=f"{scene.name}.capture").first.click()
    page.get_by_text(f'The Dag "{scene.name}.capture" does not exist').wait_for()  # this Airflow has read no DAG file
    assert page.url == f"{address}/dags/{scene.name}.capture", "the whole window, not a UI inside the frame"
    page.go_back()
    frame.get_by_role("heading", name="Tables").wait_for()  # back where the link was


def test_the_link_of_an_alert_leads_to_the_pipeline_once(context: BrowserContext, address: str, scene: Scene) -> None:
    scenes.filling(scene)
    page = context.new_page()

    page.goto(f"{address}/plugin/cdc#{scene.name}")
    frame = page.frame_locator("iframe")
    frame.get_by_role("heading", name="Tables").wait_for()

    assert "#" not in page.url
    frame.get_by_role("link", name="Pipelines", exact=True).click()
    frame.get_by_role("heading", name="Pipelines").wait_for()

"""The CDC page in Airflow's UI: a menu entry, and behind Airflow's own login the application that it shows."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from airflow.plugins_manager import AirflowPlugin
from airflow.sdk import conf

if TYPE_CHECKING:
    from fastapi import FastAPI

PREFIX = "/cdc"


@cache
def application() -> FastAPI:
    """Build the page at the first request: every task loads plugins, and only the API server shows the page."""
    from penstock.config import paths  # noqa: PLC0415
    from penstock.orchestration import connections  # noqa: PLC0415
    from penstock.orchestration.airflow_internals import airflow_state, page_access  # noqa: PLC0415
    from penstock.page.app import build  # noqa: PLC0415
    from penstock.page.queries import Deployment  # noqa: PLC0415
    from penstock.page.runbook_pages import Documents  # noqa: PLC0415

    deployment = Deployment(paths.folder(), paths.environment(), connections.connection, airflow_state)
    return build(deployment, Documents(paths.home()), [page_access()])


async def page(scope: Any, receive: Any, send: Any) -> None:
    """Answer as the page does (ASGI)."""
    await application()(scope, receive, send)


def _address() -> str:
    """Return where Airflow serves the page: below the path of its own address, if it has one."""
    base: str = conf.get("api", "base_url", fallback="")
    return urlsplit(base).path.rstrip("/") + PREFIX + "/"


class PenstockPlugin(AirflowPlugin):
    """Register the page."""

    name = "penstock"
    fastapi_apps = [{"app": page, "url_prefix": PREFIX, "name": "Penstock CDC"}]  # noqa: RUF012  # Airflow's form
    external_views = [  # noqa: RUF012  # Airflow's form
        {"name": "CDC", "href": _address(), "destination": "nav", "url_route": "cdc"}
    ]

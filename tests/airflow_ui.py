"""Airflow's own API server with our plugin, to ask where the links of a message lead."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from fastapi.testclient import TestClient

BASE = "http://testserver"
Get = Callable[[str], Any]


@contextmanager
def viewer() -> Iterator[Get]:
    """A function that asks Airflow as somebody who may only look; messages that are sent meanwhile lead there."""
    from airflow.api_fastapi.app import create_app, get_auth_manager, purge_cached_app  # noqa: PLC0415
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser  # noqa: PLC0415

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AIRFLOW__API_AUTH__JWT_SECRET", "only-for-tests-" * 5)
        patch.setenv("AIRFLOW__API__BASE_URL", BASE)
        purge_cached_app()
        app = create_app(apps="core")
        token = get_auth_manager().generate_jwt(SimpleAuthManagerUser(username="viewer", role="viewer"))
        yield TestClient(app, headers={"Authorization": f"Bearer {token}"}).get
        purge_cached_app()


def links(text: str) -> dict[str, str]:
    """The links of a message, by the name of their line."""
    return dict(re.findall(r"^([\w ]+): .*?(http\S+)$", text, flags=re.MULTILINE))


def broken(get: Get, text: str) -> dict[str, str]:
    """The links of a message that Airflow does not answer with a page."""
    return {name: url for name, url in links(text).items() if get(url.partition("#")[0]).status_code != 200}

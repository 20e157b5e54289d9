"""The heartbeat: a dead man's switch that each healthy run of slot health pings, because an Airflow that is down tells nobody.

Whoever is pinged tells when the pings stay away. An address is a secret: it is in no log, exception or event.
"""

from __future__ import annotations

from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from penstock.config.model import Pipeline
from penstock.orchestration.notifications import send

_PATIENCE_SECONDS = 10.0


def beat(pipeline: Pipeline) -> tuple[str, ...]:
    """Ping the heartbeat of a pipeline, if it has one; return what went wrong, without the address."""
    wanted = pipeline.health.heartbeat
    if wanted is None:
        return ()
    if "://" not in wanted:
        return send((wanted,), f"[penstock] alive: {pipeline.name}", "slot health has run and is well", "info").failures
    try:
        with urlopen(Request(wanted, method="POST", data=b""), timeout=_PATIENCE_SECONDS):  # noqa: S310  # https? is checked
            return ()
    except HTTPError as error:
        problem = f"status {error.code}"
    except (URLError, OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        problem = type(reason).__name__
    return (f"expected the address of health.heartbeat to take a ping, got {problem}",)

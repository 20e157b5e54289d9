"""Channels: Airflow connections whose password holds URLs of the library apprise. The URLs are secrets.

Airflow shows and exports the extra of a connection in clear, so URLs are not taken from there.
"""

import json
import re
from html import escape
from typing import Any

from penstock.errors import ConfigError

_SLUG = "connection-missing"
_ADDRESS = re.compile(r"https?://[^\s<]+")
_FORM = 'its URLs in the password: one a line, or JSON such as [{"path": "<url>", "tag": "mail"}]'


def services(channel: str) -> list[Any]:
    """Return apprise's services of a channel `<connection>` or `<connection>:<tag>`; raises ConfigError without a secret."""
    import apprise  # it takes long, and every DAG file would pay for it

    conn_id, _, tag = channel.partition(":")
    box = apprise.Apprise()
    for url, tags in urls(conn_id):
        box.add(url, tag=tags)
    found = list(box.find(tag or "all"))
    if not found:
        raise ConfigError(_SLUG, f"expected channel {channel} to hold an apprise URL that is understood, got none")
    return found


def form(service: Any, text: str) -> dict[str, str]:
    """Return a text as a service is to take it: a mail's lines and addresses as HTML has them, else plain text.

    Without a word about its form apprise sends text as a mail's HTML, where all lines are one.
    """
    from apprise import NotifyFormat
    from apprise.plugins.email import NotifyEmail

    if not isinstance(service, NotifyEmail):
        return {"body": text, "body_format": NotifyFormat.TEXT}
    lines = (_ADDRESS.sub(r'<a href="\g<0>">\g<0></a>', escape(line)) for line in text.splitlines())
    return {"body": "<br>".join(lines), "body_format": NotifyFormat.HTML}


def urls(conn_id: str) -> list[tuple[str, str | list[str] | None]]:
    """Return the URLs of a connection with their tags; raises ConfigError("connection-missing")."""
    found = _connection(conn_id)
    if "config" in (found.extra_dejson or {}):
        raise ConfigError(
            _SLUG,
            f"expected channel {conn_id} to have {_FORM}; got them in its extra, which Airflow shows in clear. Move the value "
            f"of config into the password: airflow connections delete {conn_id}, then airflow connections add {conn_id} "
            "--conn-type generic --conn-password '<the value of config>'; and renew the secrets in them",
        )
    text = (found.password or "").strip()
    if not text:
        raise ConfigError(_SLUG, f"expected channel {conn_id} to have {_FORM}; got an empty password")
    if text[0] not in "[{":
        return [(line.strip(), None) for line in text.splitlines() if line.strip()]
    try:
        given = json.loads(text)
        listed = given if isinstance(given, list) else [given]
        return [(str(each["path"]), each.get("tag")) for each in listed]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ConfigError(_SLUG, f"expected channel {conn_id} to have {_FORM}; got JSON of another form") from None


def _connection(conn_id: str) -> Any:
    from airflow.sdk import BaseHook

    try:
        return BaseHook.get_connection(conn_id)
    except Exception as error:  # Airflow raises different classes per secrets backend
        raise ConfigError(
            _SLUG, f"expected channel {conn_id} to be an Airflow connection with apprise URLs: {type(error).__name__}"
        ) from None

"""What a channel hands over: a mail with lines and links, and plain text to everything else."""

import json

import pytest

from stack import ports
from tests.flow.health.alert_receivers import http_receiver, smtp_receiver

TEXT = "what: a <b> & 'c'\nlevel: critical\nrunbook: https://airflow.example.com/cdc/runbooks/slot-lost?a=1&b=2"


def test_a_mail_has_lines_and_links(airflow_home: object, monkeypatch: pytest.MonkeyPatch) -> None:
    from penstock.orchestration.notifications import send  # noqa: PLC0415  # after the throw-away home is set

    with http_receiver() as hook, smtp_receiver(ports.choose()) as mailbox:
        mail = f"mailto://127.0.0.1:{mailbox.port}/?smtp=127.0.0.1&from=penstock@example.com&to=oncall@example.com"
        channel = {"conn_type": "generic", "password": f"json://127.0.0.1:{hook.port}/\n{mail}"}
        monkeypatch.setenv("AIRFLOW_CONN_PEOPLE", json.dumps(channel))

        assert send(("people",), "slot-lost", TEXT).taken == 2

    (_, plain), (html,) = mailbox.mails[0], mailbox.html
    assert [line.strip() for line in plain.splitlines() if line.strip()] == TEXT.splitlines()
    assert html.strip().split("<br>") == [
        "what: a &lt;b&gt; &amp; &#x27;c&#x27;",
        "level: critical",
        'runbook: <a href="https://airflow.example.com/cdc/runbooks/slot-lost?a=1&amp;b=2">'
        "https://airflow.example.com/cdc/runbooks/slot-lost?a=1&amp;b=2</a>",
    ]
    assert hook.posts[0]["message"] == TEXT

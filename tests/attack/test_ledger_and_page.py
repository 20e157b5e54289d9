"""The ledger and the page name what happened, never with a secret or a row's value, and a hostile name is text to both."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from psycopg import sql

from penstock.config.connections import Connection
from penstock.errors import LedgerError, SourceError
from penstock.flow.capture import run as capture
from penstock.flow.context import Context
from penstock.flow.health import run as health
from penstock.flow.health.airflow_state import DagState
from penstock.flow.health.alerts import Delivery
from penstock.flow.verify.run import verify
from penstock.page.app import build
from penstock.page.queries import Deployment
from penstock.page.runbook_pages import DOCS, RUNBOOKS, Documents
from stack.servers.postgres import Database
from tests.env_fixtures import Around
from tests.pipeline_env import ROOT, PipelineEnv

VALUE, KEY = "a-marked-row-value", 918273645
SECRETS = {
    "PENSTOCK_CATALOG_PASSWORD": "marked-catalog-password",
    "PENSTOCK_SOURCE_PASSWORD": "marked-source-password",
    "PENSTOCK_LEDGER_PASSWORD": "marked-ledger-password",
    "AWS_ACCESS_KEY_ID": "marked-store-key",
    "AWS_SECRET_ACCESS_KEY": "marked-store-secret",
}
PASSWORDS = {conn_id: SECRETS[f"{conn_id.upper()}_PASSWORD"] for conn_id in ("penstock_source", "penstock_catalog")} | {
    "penstock_ledger": SECRETS["PENSTOCK_LEDGER_PASSWORD"]
}
HOSTILE = (
    "${env:PENSTOCK_CATALOG_PASSWORD}",
    "${AWS_SECRET_ACCESS_KEY}",
    "\"'><img src=x onerror=alert(1)><script>alert(1)</script>",
    "{{ 7 * 7 }}{% include 'x' %} %(password)s {0.__class__}",
)


class Guarded(PipelineEnv):
    """A pipeline whose three databases have a login and a password each."""

    @property
    def ctx(self) -> Context:
        ctx = super().ctx

        def resolve(conn_id: str) -> Connection:
            return replace(ctx.connections(conn_id), user=role(self, conn_id), password=PASSWORDS[conn_id])

        return replace(ctx, connections=resolve)


def role(env: PipelineEnv, conn_id: str) -> str:
    return f"{conn_id}_{env.name}"


@pytest.fixture
def guarded(
    request: pytest.FixtureRequest, database16: Database, around: Around, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Guarded]:
    """A pipeline with every secret set; Spark is there where the test asks for it."""
    for name, secret in SECRETS.items():
        monkeypatch.setenv(name, secret)
    for made in around.env_on(database16):
        env = Guarded(**vars(made) | {"session": around.spark if request.param else None})
        for conn_id, password in PASSWORDS.items():
            env.sql(f"create role {role(env, conn_id)} superuser login password '{password}'")
        yield env
        for conn_id in PASSWORDS:
            for place in (env.source, env.ledger, around.lake.database):
                place.execute(f"reassign owned by {role(env, conn_id)} to postgres")
            env.sql(f"drop role {role(env, conn_id)}")


def begin(env: PipelineEnv) -> None:
    """Make a table for each hostile name, with a hostile column, and two for what goes wrong later."""
    for name in HOSTILE:
        table, column = sql.Identifier(name), sql.Identifier(name)
        with env.source.connect() as conn:
            conn.execute(sql.SQL("create table {} (id int primary key, {} text, d date)").format(table, column))
            statement = "insert into {} values ({}, {}, 'infinity'), (2, 'b', null)"
            conn.execute(sql.SQL(statement).format(table, sql.Literal(KEY), sql.Literal(VALUE)))
    env.begin(
        f"create table differs (id int primary key, v text); insert into differs values ({KEY}, '{VALUE}'), (2, 'b');"
        f"create table stops (id int primary key, v text); insert into stops values ({KEY}, '{VALUE}')"
    )


def live(env: PipelineEnv) -> None:
    """Change every table, and let one stop; with Spark, in a lake that has lost rows, and compare and maintain it."""
    for name in HOSTILE:
        with env.source.connect() as conn:
            table = sql.Identifier(name)
            conn.execute(sql.SQL("update {} set id = {} where id = 2").format(table, sql.Literal(KEY + 1)))
            conn.execute(sql.SQL("delete from {} where id = {}").format(table, sql.Literal(KEY)))
    if env.session is not None:
        env.merge()
        env.spark.sql(f"delete from lake.{env.name}.public.differs")
        env.believe("differs")
    env.sql(
        f"update differs set v = v || '+' where id = {KEY}; alter table stops alter v type varchar(50) using upper(v)"
    )
    env.land(f"insert into stops values ({KEY + 1}, '{VALUE}')")
    if env.session is not None:
        env.merge()
        verify(env.ctx, merge=lambda: str(env.merge(force=True)))
        env.maintain()
    health.check(env.ctx, {"capture": DagState(paused=False)}, lambda alert: Delivery(taken=1))


def fail(env: PipelineEnv) -> None:
    """Fail to log in, with a secret that is almost right."""
    for conn_id, kind in (("penstock_source", SourceError), ("penstock_ledger", LedgerError)):
        almost = env.ctx.connections(conn_id).password + "?"
        with pytest.raises(kind) as refused:
            capture.capture(env.logged_in(conn_id, password=almost))
        assert_silent({"error": f"{refused.value!r} {refused.value}"})


def dumped(ledger: Database) -> dict[str, str]:
    """Return every table of the ledger's database as text, by name; bytes are shown as what they spell, too."""
    tables = ledger.execute(
        "select table_schema, table_name from information_schema.tables"
        " where table_schema not in ('pg_catalog', 'information_schema') and table_type = 'BASE TABLE'"
    )
    texts = {}
    for schema, table in tables:
        rows = ledger.execute(f'select t::text from "{schema}"."{table}" t')
        text = "\n".join(row for (row,) in rows)
        spelt = (bytes.fromhex(found).decode(errors="replace") for found in re.findall(r"\\x((?:[0-9a-f]{2})+)", text))
        texts[f"{schema}.{table}"] = "\n".join((text, *spelt))
    return texts


def pages(env: PipelineEnv, folder: Path) -> dict[str, str]:
    """Return whatever the page serves, below the address that Airflow gives it: every route, every link of every page."""
    documents = Documents(ROOT)
    cdc = build(Deployment(folder, {"PENSTOCK_HOME": str(ROOT), **SECRETS}, env.ctx.connections), documents, [])
    outer = FastAPI()
    outer.mount("/cdc", cdc)
    browser = TestClient(outer)
    api = "/cdc/api/pipelines"
    left = ["/cdc/", api, f"{api}/{env.name}", f"{api}/{env.name}/series", f"{api}/nobody", "/cdc/pipelines/nobody"]
    tables = [f"{api}/{env.name}/tables/{table.oid}" for table in env.tables]
    left += [f"{table}{part}" for table in tables for part in ("", "/series")]
    left += [f"/cdc/{kind}/{name}" for kind in (RUNBOOKS, DOCS) for name in documents.names(kind)]
    found: dict[str, str] = {}
    while left:
        place = left.pop()
        if place in found:
            continue
        answer = browser.get(place)
        found[place] = answer.text
        if answer.headers["content-type"].startswith("text/html"):
            links = re.findall(r'(?:href|src)="(/cdc/[^"#]*)', answer.text)
            left += [link.replace("&amp;", "&") for link in links]
    asked = [place.removeprefix("/cdc").partition("?")[0] for place in found]
    for route in cdc.routes:
        assert any(route.path_regex.match(place) for place in asked), route.path  # type: ignore[attr-defined]
    return found


def assert_silent(texts: dict[str, str]) -> None:
    """Assert that none of these texts holds a secret, a row's value or a key."""
    marks = (*SECRETS.values(), VALUE, VALUE.upper(), str(KEY), str(KEY + 1))
    assert [
        f"{name}: ...{text[max(0, text.index(mark) - 200) : text.index(mark) + 60]}..."
        for name, text in texts.items()
        for mark in marks
        if mark in text
    ] == []


@pytest.mark.parametrize(
    "guarded",
    [
        pytest.param(False, id="until the landing zone"),
        pytest.param(True, id="whole job", marks=[pytest.mark.slow, pytest.mark.spark]),
    ],
    indirect=True,
)
def test_the_whole_ledger_and_every_page_hold_no_secret_and_no_row_and_show_hostile_names_as_text(
    guarded: Guarded, tmp_path: Path
) -> None:
    env, folder = guarded, tmp_path / "pipelines"
    env.settings["tables"] = {"include": ["public.*"], "on_change": "pause"}
    folder.mkdir()
    known = {"name": env.name, "landing": {"uri": str(env.landing)}, **env.settings}
    (folder / "good.yaml").write_text(json.dumps(known))
    wrong = {"name": "wrong", "tables": {"include": ["public.*"]}, "capture": {"schedule": "${AWS_SECRET_ACCESS_KEY}"}}
    (folder / "wrong.yaml").write_text(json.dumps(wrong))

    begin(env)
    live(env)
    fail(env)

    ledger, shown = dumped(env.ledger), pages(env, folder)
    tables = {table.name: table.state for table in env.tables}
    assert tables["stops"] == "paused"
    if env.session is not None:
        assert {state for name, state in tables.items() if name != "stops"} == {"ready"}
        assert "update_missing" in ledger["penstock.cut"]
        alarms = {(alarm.slug, alarm.subject) for alarm in env.ctx.ledger.health.alarms(env.name)}
        assert ("verify-differs", "public.differs") in alarms
    assert_silent({**ledger, **shown, "lines": "\n".join(env.lines)})
    page, said = shown[f"/cdc/pipelines/{env.name}"], json.loads(shown[f"/cdc/api/pipelines/{env.name}"])
    assert set(HOSTILE) <= {table["name"].removeprefix("public.") for table in said["tables"]}
    assert [mark for mark in ("<img", "<script>alert") if mark in page] == []
    assert "{{ 7 * 7 }}" in page
    assert "wrong.yaml" in shown["/cdc/"]

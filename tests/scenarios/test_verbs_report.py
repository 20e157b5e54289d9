"""What the verbs of a whole job report: plain data for tools, a status, and bars where a person looks on."""

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from penstock.cli import printing
from penstock.cli.options import Status
from tests.env_fixtures import Command
from tests.pipeline_env import PipelineEnv

SHOP = "create table a (id int primary key); create table b (id int primary key); insert into a select generate_series(1, 9)"


@pytest.mark.slow
def test_each_verb_of_a_job_reports_as_plain_data_and_all_takes_every_pipeline(
    env16: PipelineEnv, penstock: Command, tmp_path: Path
) -> None:
    env16.sql(SHOP)
    name = env16.name

    def asked(verb: str, *options: str, status: Status = Status.DONE) -> Any:
        done = penstock(verb, "--json", *options)
        assert done.exit_code == status, done.output
        return json.loads(done.stdout)

    early = asked("status", status=Status.REFUSED)
    assert (early["pipeline"], early["error"]["slug"]) == (name, "ledger-not-migrated")
    assert [each for each in asked("check")["findings"] if each["level"] == "error"] == []
    assert penstock("bootstrap").exit_code == Status.DONE

    env16.sql("insert into b select generate_series(1, 5)")
    assert asked("capture")["changes"] == 5
    assert asked("merge")["attempt"] is not None
    assert asked("merge")["attempt"] is None
    found = asked("status")
    assert (found["state"], found["halted"], found["tables"]) == ("running", None, {"ready": 2})
    assert found["last_cut"]["lsn"] == found["landed_through"]
    assert {alarm["level"] for alarm in asked("health")["alarms"]} == set()
    assert asked("resync", "--table", "public.a")["switched"] is None
    assert asked("replay", "--table", "public.a")["plan"]
    assert asked("verify", "--now")["equal"] == 2
    assert len(asked("teardown")["statements"]) == 2

    env16.spark.sql(f"delete from lake.{name}.public.a where id = 1")
    env16.believe("a")
    differs = asked("verify", "--now", status=Status.FOUND)
    assert (differs["differing"], differs["error"]["slug"]) == (["public.a"], "verify-differs")

    (tmp_path / "bad.yaml").write_text("name: bad\ntabels: {}\n")
    every = penstock("status", "--all", "--json", pipeline=None)
    assert every.exit_code == Status.REFUSED
    good, bad = json.loads(every.stdout)
    assert (good["pipeline"], good["state"], bad["error"]["slug"]) == (name, "running", "config-invalid")


@pytest.mark.slow
def test_work_with_a_known_end_says_how_far_it_is_and_a_terminal_shows_bars(
    env16: PipelineEnv, penstock: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = io.StringIO()
    monkeypatch.setattr(
        printing, "progress_console", lambda: Console(file=terminal, force_terminal=True, width=200, highlight=False)
    )
    env16.sql(SHOP)

    assert penstock("bootstrap").exit_code == Status.DONE
    assert penstock("resync", "--table", "public.a", "--no-dry-run").exit_code == Status.DONE
    assert penstock("replay", "--table", "public.a", "--no-dry-run").exit_code == Status.DONE
    assert penstock("verify").exit_code == Status.DONE
    assert penstock("verify", "--now").exit_code == Status.DONE
    shown = terminal.getvalue()
    for stage in (
        "copying 2 tables",
        "copying 1 table ",
        "building public.a",
        "reading the source",
        "comparing with the lake",
        "comparing tables",
    ):
        assert stage in shown, stage
    assert re.search(r"reading the source .*\b[1-9]\d* rows", shown), "a verification says how many rows it has read"

"""What every application does around its own work."""

from __future__ import annotations

import sys

import pytest

from penstock_spark import application


def test_an_application_that_could_not_leave_its_result_refuses_before_any_work(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["merge_changes.py", "--plan", "file:///nowhere"])
    worked: list[object] = []

    with pytest.raises(SystemExit):
        application.carry_out("of-a-test", None, worked.append, lambda *_: worked.append("work"))

    assert worked == []
    assert "--result" in capsys.readouterr().err

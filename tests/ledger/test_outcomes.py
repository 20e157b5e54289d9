"""How tasks ended last is remembered, whoever says it first."""

from penstock.ledger import Ledger


def failing(ledger: Ledger, name: str) -> dict[str, tuple[str, str | None]]:
    return {each.task: (each.run_id, each.slug) for each in ledger.outcomes.all(name) if each.failing_since}


def test_a_task_that_fails_again_fails_since_its_first_failure(ledger: Ledger, running: str) -> None:
    ledger.outcomes.failed(running, "merge", "spark", "run 1", slug="spark-failed")
    (first,) = ledger.outcomes.all(running)
    ledger.outcomes.failed(running, "merge", "spark", "run 2", slug="publish-conflict")
    (second,) = ledger.outcomes.all(running)

    assert second.failing_since == first.failing_since
    assert (second.run_id, second.slug) == ("run 2", "publish-conflict")


def test_what_a_task_said_of_its_failure_is_not_overwritten_by_the_notice_of_the_same_run(
    ledger: Ledger, running: str
) -> None:
    ledger.outcomes.failed(running, "merge", "spark", "run 1", slug="spark-failed")
    ledger.outcomes.failed(running, "merge", "spark", "run 1")
    ledger.outcomes.failed(running, "merge", "", "run 1")
    assert failing(ledger, running) == {"spark": ("run 1", "spark-failed")}

    ledger.outcomes.failed(running, "merge", "", "run 2")
    assert failing(ledger, running) == {"spark": ("run 1", "spark-failed"), "": ("run 2", None)}


def test_a_task_that_succeeds_ends_its_own_failure_and_the_last_task_those_of_earlier_runs(
    ledger: Ledger, running: str
) -> None:
    for task in ("plan", "spark", ""):
        ledger.outcomes.failed(running, "merge", task, f"run of {task}", slug=None)
    ledger.outcomes.failed(running, "capture", "windows", "another DAG's", slug="slot-in-use")

    ledger.outcomes.succeeded(running, "merge", "plan", "run 2", last=False)
    assert set(failing(ledger, running)) == {"spark", "", "windows"}
    ledger.outcomes.succeeded(running, "merge", "publish", "run 2", last=True)

    assert set(failing(ledger, running)) == {"windows"}


def test_the_last_task_does_not_end_a_failure_of_its_own_run(ledger: Ledger, running: str) -> None:
    ledger.outcomes.failed(running, "slot_health", "drain", "run 1", slug="slot-in-use")
    ledger.outcomes.succeeded(running, "slot_health", "delivered", "run 1", last=True)
    assert set(failing(ledger, running)) == {"drain"}


def test_a_pipeline_that_the_ledger_does_not_know_has_no_outcomes(ledger: Ledger) -> None:
    ledger.outcomes.failed("nobody", "merge", "spark", "run 1")
    ledger.outcomes.succeeded("nobody", "merge", "spark", "run 1", last=True)

    assert ledger.outcomes.all("nobody") == []

"""One cause, one message. Pure: no server, no clock."""

from datetime import timedelta

from penstock.conditions import ALARMS, LEVELS, PAGED
from penstock.flow.health.alerts import HOLD_SECONDS, alerts
from penstock.flow.health.judge import FOLLOWS, SAME_SUBJECT, Finding, inhibited
from tests.flow.health.cases import NOW, alarm, policy


def finding(slug: str, level: str = "warn", subject: str = "shop") -> Finding:
    return Finding(slug, subject, level, f"{slug} is there", "it lasts")  # type: ignore[arg-type]


def causes(*findings: Finding) -> dict[str, str | None]:
    return {each.slug: each.cause for each in inhibited(findings)}


def test_what_follows_is_named_by_its_cause_which_is_as_bad_as_the_worst_of_it() -> None:
    cause, follows = inhibited([finding("merge-paused"), finding("lake-stale", "critical")])

    assert (cause.level, cause.cause, cause.follows) == ("critical", None, ("lake-stale: lake-stale is there",))
    assert (follows.level, follows.cause, follows.follows) == ("critical", "merge-paused shop", ())


def test_findings_that_have_nothing_to_do_with_each_other_stay_as_they_are() -> None:
    both = [finding("slot-abandoned"), finding("lake-stale")]

    assert inhibited(both) == both


def test_a_chain_leads_to_what_began_it() -> None:
    found = causes(finding("slot-lost"), finding("pipeline-halted"), finding("capture-failing"), finding("lake-stale"))

    assert found == {
        "slot-lost": None,
        "pipeline-halted": "slot-lost shop",
        "capture-failing": "slot-lost shop",
        "lake-stale": "slot-lost shop",
    }


def test_a_source_that_does_not_answer_explains_captures_and_the_age_of_the_lake_but_no_paused_merge() -> None:
    found = causes(
        finding("source-unreachable"), finding("capture-failing"), finding("lake-stale"), finding("merge-paused")
    )

    assert found["capture-failing"] == found["lake-stale"] == "source-unreachable shop"
    assert found["merge-paused"] is None


def test_a_difference_explains_the_conflicts_of_its_own_table_only() -> None:
    found = inhibited(
        [
            finding("verify-differs", subject="public.t"),
            finding("divergence-suspected", subject="public.t"),
            finding("divergence-suspected", subject="public.u"),
        ]
    )

    assert [each.cause for each in found] == [None, "verify-differs public.t", None]


def test_an_error_that_has_paged_is_the_cause_of_its_dags_failing() -> None:
    paged = alarm("source-auth", "critical", "shop.capture.windows")

    (found,) = inhibited([finding("capture-failing", subject="shop.capture")], [paged])

    assert found.cause == "source-auth shop.capture.windows"


def test_causes_form_no_circle_and_all_are_alarms() -> None:
    def ends(slug: str, seen: tuple[str, ...] = ()) -> bool:
        return slug not in seen and all(ends(each, (*seen, slug)) for each in FOLLOWS.get(slug, ()))

    assert [slug for slug in FOLLOWS if not ends(slug)] == []
    named = {*FOLLOWS, *SAME_SUBJECT}.union(*FOLLOWS.values(), *SAME_SUBJECT.values())
    assert sorted(named - set(ALARMS)) == []
    assert not named & PAGED


def test_the_level_of_a_cause_may_rise_as_far_as_what_follows() -> None:
    for cause, follow in FOLLOWS.items():
        worst = max((LEVELS.index(ALARMS[slug].level) for slug in follow), default=0)
        assert LEVELS.index(ALARMS[cause].level) >= worst, cause


def test_what_has_a_cause_sends_nothing_until_it_has_outlived_it() -> None:
    rules = policy(warn={"channels": ["mail"]})

    def due(**changes: object) -> list[str]:
        return [each.happening for each in alerts([alarm("lake-stale", **changes)], rules, NOW)]

    held = timedelta(seconds=HOLD_SECONDS)
    assert due(cause="merge-paused shop.merge") == []
    assert due(freed_at=NOW - held / 2) == []
    assert due(freed_at=NOW - held) == ["opened"]
    assert due() == ["opened"]


def test_alarms_of_one_kind_share_a_message() -> None:
    paused = [alarm("table-paused", subject=f"public.t{number}", number=number) for number in range(12)]
    (one,) = alerts([*paused], policy(warn={"channels": ["mail"]}), NOW)

    assert one.title == "[penstock] WARN: table-paused public.t0 and 11 more (shop)"
    assert [line for line in one.text().splitlines() if line.startswith("what")][-1] == "what: and 2 more"
    assert len(one.alarms) == 12

"""What follows from one look at the catalog: which tables join or leave the publication, and which the ledger takes or lets go."""

from dataclasses import replace
from typing import Any

import pytest

from penstock.config.model import Pipeline
from penstock.flow.schema import publication
from penstock.flow.schema.membership import member_changes
from penstock.flow.schema.publication import Alteration
from penstock.lsn import Lsn
from penstock.shapes.accepted import Accepted
from penstock.shapes.source_table import SourceTable
from penstock.source.catalog import Relation
from penstock.source.catalog_snapshot import CatalogSnapshot
from penstock.source.patterns import choose
from penstock.source.publication import PublicationFacts
from tests.shapes.tables import source_table, table_record

FACTS = PublicationFacts(
    oid=16400,
    stamp="16400:700",
    age=1,
    comment="made by penstock for pipeline shop",
    owned=True,
    owner="owner",
    all_tables=False,
    sent=("insert", "update", "delete", "truncate", "via_root"),
    generated=False,
)
TABLE = source_table(1, "one", columns=(), leaves=(), file=1)
RECORD = table_record(1, "one", accepted=Accepted(TABLE.shape))


def table(oid: int, **other: Any) -> SourceTable:
    return replace(TABLE, oid=oid, name=f"t{oid}", membership=(f"table {oid}",), **other)


def pipeline(*include: str, **source: Any) -> Pipeline:
    return Pipeline.model_validate(
        {"name": "shop", "tables": {"include": include}, "landing": {"uri": "/x"}, "source": source}
    )


def snapshot(
    published: list[SourceTable], others: list[SourceTable], *include: str, facts: PublicationFacts = FACTS
) -> CatalogSnapshot:
    there = [Relation(each.oid, each.schema, each.name, each.kind, "p", False, []) for each in (*published, *others)]
    choice = choose(there, pipeline(*include).tables)
    chosen = {relation.oid for relation in choice.chosen}
    return CatalogSnapshot(
        publication=facts,
        relations=tuple(there),
        tables=tuple(published),
        listed=frozenset(each.oid for each in published),
        choice=choice,
        candidates=tuple(each for each in others if each.oid in chosen),
        owned=frozenset(each.oid for each in others),
    )


def decided(found: CatalogSnapshot, *include: str, on_standby: bool = False, **source: Any) -> Alteration:
    decision = publication.decide(pipeline(*include, **source), found, on_standby=on_standby)
    assert decision is not None
    return decision


def test_a_table_that_matches_joins_and_one_that_matches_no_more_leaves() -> None:
    found = decided(snapshot([table(1), table(2)], [table(3)], "public.t1", "public.t3"), "public.t1", "public.t3")

    assert [each.name for each in found.missing] == ["t3"]
    assert [each.name for each in found.extra] == ["t2"]
    assert (found.notices, found.blocker) == ([], None)


def test_a_table_without_an_identity_does_not_join_and_that_is_said() -> None:
    found = decided(snapshot([], [table(1, identity="n", key=())], "public.*"), "public.*")

    assert not found.tables
    assert [(each.slug, each.oid) for each in found.notices] == [("no-usable-identity", 1)]


def test_a_pattern_without_effect_keeps_every_table_where_it_is() -> None:
    found = decided(snapshot([table(1), table(2)], [], "public.t1", "public.typo"), "public.t1", "public.typo")

    assert not found.tables
    assert [each.slug for each in found.notices] == ["no-matching-tables"]


def test_a_publication_that_shows_partitions_is_not_held_against_patterns_that_choose_roots() -> None:
    facts = replace(FACTS, sent=FACTS.sent[:-1])

    assert not decided(snapshot([], [table(1, kind="p")], "public.*", facts=facts), "public.*").tables


@pytest.mark.parametrize(
    ("facts", "more", "blocker"),
    [
        pytest.param(FACTS, {"adopt": True}, "not made by Penstock", id="adopted"),
        pytest.param(replace(FACTS, comment=None), {}, "not made by Penstock", id="another's"),
        pytest.param(FACTS, {"on_standby": True}, "a standby", id="standby"),
        pytest.param(replace(FACTS, owned=False), {}, "does not own", id="not owned"),
    ],
)
def test_a_publication_that_is_not_ours_is_not_altered(
    facts: PublicationFacts, more: dict[str, Any], blocker: str
) -> None:
    found = decided(snapshot([], [table(1)], "public.*", facts=facts), "public.*", **more)

    assert blocker in (found.blocker or "")
    assert found.tables == 1


def test_without_patterns_nothing_is_decided_about_the_publication() -> None:
    found = replace(snapshot([table(1)], [], "public.*"), choice=None)

    assert publication.decide(pipeline("public.*"), found, on_standby=False) is None


def test_tables_join_leave_and_come_back() -> None:
    known = [
        replace(RECORD, oid=1),
        replace(RECORD, oid=2),
        replace(RECORD, oid=3, state="dropped"),
        replace(RECORD, oid=4, left_lsn=Lsn(7)),
    ]
    back = table(2)

    changes = member_changes(known, snapshot([back, table(3), table(4), table(5)], [], "public.*"), split=False)

    assert changes.back == ((known[1], back),)
    assert changes.left == (known[0],)
    assert [each.oid for each in changes.joined] == [3, 4, 5]


def test_a_paused_table_that_left_leaves_again_when_it_is_resumed_as_no_member() -> None:
    known = replace(RECORD, state="paused", paused_from_state="ready", left_lsn=Lsn(7))

    assert member_changes([known], snapshot([], [], "public.*"), split=False).left == (known,)


def test_a_root_in_place_of_which_its_partitions_are_shown_has_not_left_and_they_have_not_joined() -> None:
    root = replace(RECORD, accepted=Accepted(replace(TABLE, kind="p").shape))
    found = snapshot([table(2, parents=(1,))], [table(1, kind="p")], "public.*")

    split, shown = (member_changes([root], found, split=split) for split in (True, False))

    assert (split.left, split.joined) == ((), ())
    assert (shown.left, [each.oid for each in shown.joined]) == ((root,), [2])


def test_a_root_that_was_dropped_has_left_also_where_its_partitions_are_shown() -> None:
    root = replace(RECORD, accepted=Accepted(replace(TABLE, kind="p").shape))

    assert member_changes([root], snapshot([], [], "public.*"), split=True).left == (root,)

"""Every hard case that the demo promises really is in the stream of changes, as the server itself sends it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pytest

from demo import source, transactions
from demo.workload import Totals, Workload
from penstock.wire import messages as m
from penstock.wire.pgoutput import Decoder
from stack.servers.postgres import Database

OFTEN = 20
"""Each kind of transaction is committed at least so often, so that what only some of them do happens too."""

PEEK = (
    "select data from pg_logical_slot_peek_binary_changes('demo', null, null, "
    "'proto_version', '1', 'publication_names', %s)"
)


@dataclass(frozen=True)
class Stream:
    """All transactions that the slot holds, in commit order, each as the list of its changes."""

    transactions: list[list[Any]]
    totals: Totals

    def changes(self, *tables: str) -> list[list[Any]]:
        """Return, per transaction that has any, the changes of some tables (all of them without a name)."""
        found = ([each for each in one if not tables or touches(each, tables)] for one in self.transactions)
        return [one for one in found if one]

    def all(self, kind: type, *tables: str) -> list[Any]:
        """Return the changes of one kind of some tables."""
        return [each for one in self.changes(*tables) for each in one if isinstance(each, kind)]


def touches(change: Any, tables: Iterable[str]) -> bool:
    relations = change.relations if isinstance(change, m.Truncate) else [change.relation]
    return any(relation.name in tables for relation in relations)


def row(change: Any, cells: tuple[Any, ...]) -> dict[str, Any]:
    """Return the cells by column, values as plain text."""
    plain = (cell.value if isinstance(cell, m.Text) else cell for cell in cells)
    return dict(zip((column.name for column in change.relation.columns), plain, strict=True))


def new(change: Any) -> dict[str, Any]:
    return row(change, change.new)


def old(change: Any) -> dict[str, Any]:
    return row(change, change.old.cells)


def moves(one: list[Any], column: str) -> list[tuple[str, str]]:
    """Return the key changes of a transaction, from where to where."""
    return [(old(each)[column], new(each)[column]) for each in one if isinstance(each, m.Update) and each.old]


@pytest.fixture(scope="module")
def stream(shop: Database, address: dict[str, str]) -> Stream:
    source.sell_gift_cards(shop)  # from then on tables are emptied, too
    shop.execute("select pg_create_logical_replication_slot('demo', 'pgoutput')")
    load = Workload(address, rate=100, pgbench=shop.server.binaries.program("pgbench"))
    load.start()
    while load.wait(0.2) and not all(load.so_far().committed[each.__name__] >= OFTEN for each in transactions.MIX):
        pass
    totals = load.stop()
    decoder = Decoder()
    reported = [decoder.decode(data) for (data,) in shop.execute(PEEK, source.PUBLICATION)]
    shop.execute("select pg_drop_replication_slot('demo')")
    found: list[list[Any]] = []
    for message in reported:
        if isinstance(message, m.Begin):
            found.append([])
        elif isinstance(message, m.Insert | m.Update | m.Delete | m.Truncate):
            found[-1].append(message)
    return Stream(found, totals)


def test_the_stream_holds_every_published_table_and_no_other(stream: Stream, shop: Database):
    with shop.connect() as connection:
        published = {identifier.as_string().replace('""', '"') for identifier in source.published(connection)}
    streamed = {f'"{r.namespace}"."{r.name}"' for one in stream.transactions for each in one for r in relations(each)}

    assert published == streamed
    assert not any("session_cache" in name or "shipments_" in name for name in streamed)


def relations(change: Any) -> list[m.Relation]:
    return list(change.relations) if isinstance(change, m.Truncate) else [change.relation]


def test_writers_commit_at_once_and_hardly_ever_refuse_each_other(stream: Stream):
    assert stream.totals.refused.total() < stream.totals.transactions / 20
    assert stream.totals.committed["pgbench"] > 0


def test_an_order_comes_with_its_lines_and_what_it_took_from_stock(stream: Stream):
    together = [
        {each.relation.name for each in one if isinstance(each, m.Insert | m.Update)} for one in stream.transactions
    ]

    assert {"orders", "order_lines", "stock"} in together


def test_what_was_rolled_back_to_a_savepoint_or_altogether_is_in_no_transaction(stream: Stream):
    quantities = [int(new(each)["quantity"]) for each in stream.all(m.Update, "order_lines")]

    assert quantities
    assert max(quantities) < transactions.NEVER_COMMITTED


def test_most_updates_of_wide_rows_leave_the_wide_columns_out(stream: Stream):
    updates = [new(each) for each in stream.all(m.Update, "customers")]

    assert any(
        each["biography"] is m.Missing.UNCHANGED and each["preferences"] is m.Missing.UNCHANGED for each in updates
    )
    assert any(
        each["biography"] is not m.Missing.UNCHANGED and each["preferences"] is m.Missing.UNCHANGED for each in updates
    )
    assert any(each["biography"] is m.Missing.NULL for each in updates)


def test_a_key_changes_while_a_wide_column_of_its_row_stays(stream: Stream):
    renamed = [each for each in stream.all(m.Update, "products") if isinstance(each.old, m.OldKey)]

    assert any(new(each)["description"] is m.Missing.UNCHANGED for each in renamed)
    assert any(new(each)["photo"] is m.Missing.UNCHANGED for each in renamed)


def test_a_renamed_product_takes_the_keys_of_other_tables_along(stream: Stream):
    tables = [{each.relation.name for each in one if isinstance(each, m.Update)} for one in stream.transactions]

    assert {"products", "stock", "price.list", "order_lines"} in tables


def test_a_row_is_updated_twice_and_then_gets_another_key_in_one_transaction(stream: Stream):
    assert any(
        [(isinstance(each, m.Update), bool(getattr(each, "old", None))) for each in one][:3]
        == [(True, False), (True, False), (True, True)]
        for one in stream.changes("products")
    )


def test_a_row_is_deleted_and_inserted_again_in_one_transaction(stream: Stream):
    assert any(
        isinstance(one[0], m.Delete) and isinstance(one[1], m.Insert) and old(one[0])["sku"] == new(one[1])["sku"]
        for one in stream.changes("products")
        if len(one) > 1
    )


def test_two_keys_trade_places_through_a_third(stream: Stream):
    swaps = [moves(one, "position") for one in stream.changes("ranking")]

    assert any(len(swap) == 3 and swap[0][1] == swap[2][0] and swap[1] == (swap[2][1], swap[0][0]) for swap in swaps)


def test_keys_move_in_chains_with_an_update_after_the_moves(stream: Stream):
    chains = [one for one in stream.changes("ranking") if len(moves(one, "position")) >= 4]

    assert any(isinstance(one[-1], m.Update) and one[-1].old is None for one in chains)
    assert any(new(each)["portrait"] is m.Missing.UNCHANGED for one in chains for each in one)


def test_a_key_whose_row_was_deleted_goes_to_another_row_in_the_same_transaction(stream: Stream):
    assert any(
        [type(each) for each in one] == [m.Delete, m.Update, m.Insert]
        and old(one[0])["position"] == new(one[1])["position"]
        for one in stream.changes("ranking")
    )


def test_a_table_without_a_key_sends_its_whole_old_rows_and_holds_equal_ones(stream: Stream, shop: Database):
    deleted, updated = stream.all(m.Delete, "clicks"), stream.all(m.Update, "clicks")
    (equal,) = shop.execute("select count(*) - count(distinct clicks::text) from shop.clicks")

    assert all(isinstance(each.old, m.OldRow) for each in deleted + updated)
    assert len(deleted) > 0
    assert equal[0] > 0
    unchanged = [each for each in updated if new(each)["trace"] is m.Missing.UNCHANGED]
    assert all(isinstance(old(each)["trace"], str) for each in unchanged)


def test_a_table_with_a_key_may_send_whole_old_rows_too_also_when_the_key_changes(stream: Stream):
    amended = stream.all(m.Update, "contracts")

    assert all(isinstance(each.old, m.OldRow) and isinstance(old(each)["body"], str) for each in amended)
    assert any(old(each)["number"] != new(each)["number"] for each in amended)
    assert any(new(each)["body"] is m.Missing.UNCHANGED for each in amended)


def test_a_replica_identity_other_than_the_primary_key_hides_changes_of_that_key(stream: Stream):
    updates = stream.all(m.Update, "coupons")
    (relation,) = {each.relation for each in updates}

    assert relation.replica_identity == "i"
    assert [column.name for column in relation.columns if column.key] == ["code"]
    assert any(each.old is not None for each in updates)
    seen = {new(each)["id"] for each in updates if each.old is None}
    assert any(int(key) > 1000 for key in seen)


def test_a_key_that_is_stored_out_of_line_comes_in_the_old_tuple_only(stream: Stream):
    followed = stream.all(m.Update, "long_links")

    assert any(new(each)["url"] is m.Missing.UNCHANGED and len(old(each)["url"]) > 2000 for each in followed)
    assert any(isinstance(new(each)["url"], str) for each in followed)


def test_a_row_that_moves_between_partitions_is_deleted_and_inserted_in_the_root(stream: Stream):
    pairs = [
        (old(one[at]), new(one[at + 1]))
        for one in stream.changes("shipments")
        for at in range(len(one) - 1)
        if isinstance(one[at], m.Delete) and isinstance(one[at + 1], m.Insert)
    ]

    moved = [(before, after) for before, after in pairs if before["id"] == after["id"]]
    assert any(before["region"] != after["region"] for before, after in moved)


def test_tables_are_truncated_together_also_between_inserts_of_one_transaction(stream: Stream):
    both = stream.all(m.Truncate, "import_batches")

    assert any({relation.name for relation in each.relations} == {"import_batches", "import_rows"} for each in both)
    assert any(
        isinstance(one[0], m.Insert) and any(isinstance(each, m.Truncate) for each in one[1:-1])
        for one in stream.changes("import_batches", "import_rows")
    )


def test_pgbench_begins_by_emptying_its_history_and_then_only_inserts(stream: Stream):
    history = [each for one in stream.changes("pgbench_history") for each in one]

    assert isinstance(history[0], m.Truncate)
    assert {type(each) for each in history[1:]} == {m.Insert}
    assert history[1].relation.replica_identity == "f"


def test_a_generated_column_is_not_in_the_stream(stream: Stream, shop: Database):
    columns = {column.name for column in stream.all(m.Insert, "order_lines")[0].relation.columns}

    assert columns == {"order_id", "line_no", "sku", "quantity", "price"}
    assert shop.execute("select count(*) from shop.order_lines where amount = quantity * price")[0][0] > 0


def test_names_keep_their_case_spaces_quotes_and_letters(stream: Stream):
    (relation,) = {each.relation for each in stream.all(m.Update, "Order")}

    assert [column.name for column in relation.columns] == ["Id", "select", "from", 'weiRd "name', "größe", "Group By"]
    assert {each.relation.name for each in stream.all(m.Insert, "price.list")} == {"price.list"}


def test_values_that_other_systems_have_no_type_for_are_in_keys_and_columns(stream: Stream):
    priced = stream.all(m.Insert, "price.list") + stream.all(m.Update, "price.list")
    rows = [new(each) for each in stream.all(m.Insert, "every_type") + stream.all(m.Update, "every_type")]
    seen = {column: {each[column] for each in rows} for column in rows[0]}

    assert {"-infinity", "infinity", "0044-03-15 BC"} <= {new(each)["valid_from"] for each in priced}
    assert {"NaN", m.Missing.NULL} <= seen["numeric_"] | seen["numeric_10_2"]
    assert {"infinity", "-infinity"} <= seen["date_"] | seen["timestamp_"] | seen["timestamptz_"]
    assert len({column.type_oid for column in stream.all(m.Insert, "every_type")[0].relation.columns}) > 60

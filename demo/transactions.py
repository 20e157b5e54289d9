"""What happens in the shop: every kind of transaction, each a function of a connection and a seeded die.

A function runs inside one transaction and picks its rows on the server, so any number of writers may run them at
once, and a load that was killed continues where the database stands. `MIX` says how often each one happens.
"""

from collections.abc import Callable, Mapping
from random import Random
from typing import LiteralString

from psycopg import Connection, Rollback, sql

from demo import every_type

Transaction = Callable[[Connection, Random], None]

NEVER_COMMITTED = 100
"""A quantity that only work rolled back to a savepoint ever writes."""

# --- orders: several tables at once, savepoints, rollbacks ---------------------------------------------


def place_order(connection: Connection, dice: Random) -> None:
    """Insert an order with its lines and take them from stock; a line that is out of stock is rolled back alone."""
    order = _scalar(
        connection,
        "insert into shop.orders (customer_id, note) values "
        "((select shop.some_customer()), case when random() < 0.2 then shop.noise(2300) end) returning id",
    )
    for line in range(1, dice.randint(2, 5)):
        with connection.transaction() as savepoint:
            taken = connection.execute(
                "update shop.stock set quantity = quantity - 1, counted_at = clock_timestamp() "
                "where (warehouse, sku) = (%s, (select shop.some_sku())) returning sku",
                (dice.randint(1, 3),),
            ).fetchone()
            connection.execute(
                "insert into shop.order_lines (order_id, line_no, sku, quantity, price) "
                "select %s, %s, sku, %s, price from shop.products where sku = %s",
                (order, line, dice.randint(1, 9), taken and taken[0]),
            )
            if dice.random() < 0.15:
                raise Rollback(savepoint)


def advance_order(connection: Connection, dice: Random) -> None:
    """Change an order's status and leave its long note alone."""
    status = dice.choice(["new", "paid", "sent", "sent back", "it's lost"])
    connection.execute("update shop.orders set status = %s where id = (select shop.some_order())", (status,))


def change_line(connection: Connection, dice: Random) -> None:
    """Update one line and then another, and put a savepoint's work back in between."""
    statement = "update shop.order_lines set quantity = %s where order_id = (select shop.some_order()) and line_no = %s"
    connection.execute(statement, (dice.randint(1, 9), 1))
    with connection.transaction(force_rollback=True):
        connection.execute(statement, (NEVER_COMMITTED, 2))
    connection.execute(statement, (dice.randint(1, 9), 3))


def cancel_order(connection: Connection, _: Random) -> None:
    """Delete an order; its lines go with it."""
    connection.execute("delete from shop.orders where id = (select shop.some_order())")


def change_mind(connection: Connection, dice: Random) -> None:
    """Place an order and roll the whole transaction back: nothing of it may reach the lake."""
    with connection.transaction(force_rollback=True):
        place_order(connection, dice)
        cancel_order(connection, dice)


# --- customers and products: wide columns, names that change -------------------------------------------


def greet_customer(connection: Connection, dice: Random) -> None:
    """Change a narrow column of a row whose wide columns stay."""
    connection.execute(
        "update shop.customers set loyalty = loyalty + %s where id = (select shop.some_customer())",
        (dice.randint(-9, 9),),
    )


def rewrite_biography(connection: Connection, dice: Random) -> None:
    """Change one wide column, or take it away, while the other one stays."""
    connection.execute(
        "update shop.customers set biography = case when %s then shop.noise(2400) end where id = (select shop.some_customer())",
        (dice.random() < 0.8,),
    )


def join_and_leave(connection: Connection, dice: Random) -> None:
    """Insert a customer; delete another, with all orders, or the same one again."""
    joined = _scalar(
        connection,
        "insert into shop.customers (email, name, biography, preferences) values "
        "('new' || gen_random_uuid(), 'New', shop.noise(2500), jsonb_build_object('history', shop.noise(2200))) returning id",
    )
    if dice.random() < 0.5:
        connection.execute("delete from shop.customers where id = %s", (joined,))
    else:
        connection.execute("delete from shop.customers where id = (select shop.some_customer())")


def rename_product(connection: Connection, dice: Random) -> None:
    """Change a product's key, which three tables follow; its description and photo stay."""
    connection.execute(
        "update shop.products set sku = %s where sku = (select shop.some_sku())",
        (_new_sku(dice),),
    )


def rework_product(connection: Connection, dice: Random) -> None:
    """Update one product twice in a transaction, first wide and then narrow, then rename it."""
    sku = _scalar(connection, "select (select shop.some_sku())")
    connection.execute("update shop.products set description = shop.noise(2600) where sku = %s", (sku,))
    connection.execute("update shop.products set price = price + 0.01, weight = random() where sku = %s", (sku,))
    connection.execute("update shop.products set sku = %s where sku = %s", (_new_sku(dice), sku))


def replace_product(connection: Connection, dice: Random) -> None:
    """Delete a product and insert another one under the same key, in one transaction."""
    sku = _scalar(connection, "select (select shop.some_sku())")
    connection.execute("delete from shop.products where sku = %s", (sku,))
    connection.execute(
        "insert into shop.products (sku, name, price, description) values (%s, 'replaced', %s, shop.noise(2100))",
        (sku, dice.randint(1, 500)),
    )
    connection.execute("insert into shop.stock select warehouse, %s, 500 from generate_series(1, 3) warehouse", (sku,))


def reprice(connection: Connection, dice: Random) -> None:
    """Set a price that holds from some day on, be it for ever."""
    day = dice.choice(["-infinity", "infinity", "0044-03-15 BC", "2024-01-01", f"2025-01-{dice.randint(1, 31):02}"])
    if dice.random() < 0.2:
        connection.execute(
            'delete from shop."price.list" where sku = (select shop.some_sku()) and valid_from = %s', (day,)
        )
        return
    connection.execute(
        'insert into shop."price.list" values ((select shop.some_sku()), %s, %s) on conflict (sku, valid_from) do update set price = excluded.price',
        (day, dice.randint(1, 99_999) / 100),
    )


# --- keys that trade places ----------------------------------------------------------------------------

PLAYERS = 400
ALONE = "lock table shop.ranking in share row exclusive mode"


def swap_ranks(connection: Connection, dice: Random) -> None:
    """Let two players trade places through a position that no player has."""
    connection.execute(ALONE)
    one, other = dice.sample(range(1, PLAYERS + 1), 2)
    move = "update shop.ranking set position = %s where position = %s"
    for from_, to in ((one, -1), (other, one), (-1, other)):
        connection.execute(move, (to, from_))


def rotate_ranks(connection: Connection, dice: Random) -> None:
    """Let the last of a few players go to the front of them: a chain of key changes, with a new portrait for one."""
    connection.execute(ALONE)
    first = dice.randint(1, PLAYERS - 5)
    last = first + dice.randint(2, 5)
    move = "update shop.ranking set position = %s where position = %s"
    connection.execute(move, (-1, last))
    for position in range(last - 1, first - 1, -1):
        connection.execute(move, (position + 1, position))
    connection.execute(move, (first, -1))
    connection.execute("update shop.ranking set portrait = shop.noise(2300) where position = %s", (last,))


def replace_player(connection: Connection, dice: Random) -> None:
    """Retire a player, move the last one into the gap and let a new one begin at the end."""
    connection.execute(ALONE)
    gap = dice.randint(1, PLAYERS - 1)
    connection.execute("delete from shop.ranking where position = %s", (gap,))
    connection.execute("update shop.ranking set position = %s where position = %s", (gap, PLAYERS))
    connection.execute("insert into shop.ranking values (%s, 'newcomer', shop.noise(2300))", (PLAYERS,))


# --- no key, or not the primary one --------------------------------------------------------------------


def click(connection: Connection, dice: Random) -> None:
    """Insert equal rows into a table without a key."""
    connection.execute(
        "insert into shop.clicks select date_trunc('second', now()), %s, %s::real, %s::json, case when %s then shop.noise(2400) end "
        "from generate_series(1, %s)",
        (
            dice.choice(["/", "/cart", "", None]),
            dice.choice(["0", "-0", "NaN", "2.5"]),
            dice.choice(['{"from":  "mail"}', None]),
            dice.random() < 0.1,
            dice.randint(1, 4),
        ),
    )


def correct_click(connection: Connection, dice: Random) -> None:
    """Update one row of possibly several equal ones; a wide column stays."""
    connection.execute(
        "update shop.clicks set seconds = %s::real where ctid = (select shop.some_click())",
        (dice.choice(["NaN", "-0", "7"]),),
    )


def forget_click(connection: Connection, _: Random) -> None:
    """Delete one row of possibly several equal ones."""
    connection.execute("delete from shop.clicks where ctid = (select shop.some_click())")


def redeem_coupon(connection: Connection, dice: Random) -> None:
    """Update a coupon; now and then its id (only the primary key) or its code (the replica identity) changes."""
    coupon = _scalar(connection, "select id from shop.coupons order by id offset %s limit 1", dice.randrange(300))
    connection.execute("update shop.coupons set remaining = remaining - 1 where id = %s", (coupon,))
    chance = dice.random()
    if chance < 0.15:
        connection.execute("update shop.coupons set id = %s where id = %s", (dice.randrange(1_000_000), coupon))
    elif chance < 0.3:
        code = f"CODE-{dice.randrange(1_000_000)}"
        connection.execute("update shop.coupons set code = %s where id = %s", (code, coupon))


def amend_contract(connection: Connection, dice: Random) -> None:
    """Update a table with a key whose whole old row is in the stream; now and then the key changes."""
    contract = _scalar(
        connection, "select number from shop.contracts order by number offset %s limit 1", dice.randrange(300)
    )
    connection.execute(
        "update shop.contracts set duration = duration + '1 month -1 day' where number = %s", (contract,)
    )
    if dice.random() < 0.15:
        number = dice.randrange(1_000_000)
        connection.execute("update shop.contracts set number = %s where number = %s", (number, contract))


def follow_link(connection: Connection, dice: Random) -> None:
    """Count a hit under a key that is stored out of line; now and then the key itself changes."""
    url = _scalar(connection, "select url from shop.long_links offset %s limit 1", dice.randrange(100))
    connection.execute("update shop.long_links set hits = hits + 1 where url = %s", (url,))
    if dice.random() < 0.2:
        connection.execute(
            "update shop.long_links set url = 'https://example.org/' || shop.noise(2300) where url = %s", (url,)
        )


# --- partitions, TRUNCATE, names, types ----------------------------------------------------------------


def ship(connection: Connection, dice: Random) -> None:
    """Pack a shipment, move another one to a partition elsewhere, now and then delete one."""
    regions = ["eu", "uk", "asia", "us", "moon"]
    connection.execute(
        "insert into shop.shipments (region, state, label) values (%s, 'packed', case when %s then shop.noise(2200) end)",
        (dice.choice(regions), dice.random() < 0.5),
    )
    connection.execute(
        "update shop.shipments set region = %s, state = 'moved' where id = (select shop.some_shipment())",
        (dice.choice(regions),),
    )
    if dice.random() < 0.5:
        connection.execute("delete from shop.shipments where id = (select shop.some_shipment())")


def count_visit(connection: Connection, dice: Random) -> None:
    """Count a visit of a page on a day of this year or the last one, which lie in two partitions."""
    connection.execute(
        "insert into shop.daily_visits values (date '2024-12-01' + %s, '/', 1) "
        "on conflict (day, page) do update set visits = shop.daily_visits.visits + 1",
        (dice.randrange(60),),
    )


def import_file(connection: Connection, dice: Random) -> None:
    """Load a file into staging; now and then both tables are emptied first, or halfway.

    Nothing is emptied before gift cards are sold, which is after the first cut: a copy of the table begins again after each
    TRUNCATE, and on a slow machine that is as long as the time between two of them.
    """
    may_empty = _sells_gift_cards(connection)
    for emptied in (may_empty and dice.random() < 0.02, may_empty and dice.random() < 0.02):
        if emptied:
            connection.execute("truncate shop.import_batches restart identity cascade")
        batch = _scalar(connection, "insert into shop.import_batches (file_name) values ('more.csv') returning id")
        connection.execute(
            "insert into shop.import_rows select %s, line, 'line ' || line from generate_series(1, %s) line",
            (batch, dice.randint(1, 20)),
        )


def tidy_shelf(connection: Connection, dice: Random) -> None:
    """Work on the table whose names must be quoted; now and then its key changes."""
    key = dice.randint(1, 500)
    connection.execute(
        'update shop."Order" set "select" = %s, "weiRd ""name" = -"weiRd ""name", "größe" = random() where "Id" = %s',
        (dice.choice(["'", '"', "`", "\\", "$$", "{}", "\n", "", None]), key),
    )
    if dice.random() < 0.2:
        connection.execute('update shop."Order" set "Id" = %s where "Id" = %s', (dice.randrange(1000, 1_000_000), key))
        connection.execute(
            'insert into shop."Order" ("Id", "from") values (%s, %s) on conflict ("Id") do update set "from" = excluded."from"',
            (key, f"shelf {key}"),
        )


def set_any_type(connection: Connection, dice: Random) -> None:
    """Set some columns of some type to any of their values, or replace the whole row."""
    columns = every_type.columns(connection)
    key = dice.randint(1, 12)
    changed = {column: every_type.any_value(dice, column) for column in dice.sample(columns, 5)}
    if dice.random() < 0.3:
        connection.execute("delete from shop.every_type where id = %s", (key,))
        every_type.insert_row(connection, key, {column: every_type.any_value(dice, column) for column in columns})
    pairs = sql.SQL(", ").join(
        sql.SQL("{} = {}").format(sql.Identifier(name), value) for name, value in changed.items()
    )
    connection.execute(sql.SQL("update {} set {} where id = {}").format(every_type.TABLE, pairs, key))


def use_gift_card(connection: Connection, dice: Random) -> None:
    """Sell a gift card, spend of one, or throw one away: nothing before the shop has them."""
    if not _sells_gift_cards(connection):
        return
    if (chance := dice.random()) < 0.4:
        connection.execute(
            "insert into shop.gift_cards (amount, greeting) values (%s, shop.noise(40))", (dice.randint(5, 90),)
        )
    elif chance < 0.8:
        connection.execute(
            "update shop.gift_cards set amount = amount / 2 where id = (select min(id) from shop.gift_cards)"
        )
    else:
        connection.execute("delete from shop.gift_cards where id = (select max(id) from shop.gift_cards)")


def _sells_gift_cards(connection: Connection) -> bool:
    return bool(_scalar(connection, "select to_regclass('shop.gift_cards') is not null"))


MIX: Mapping[Transaction, int] = {
    place_order: 12,
    advance_order: 12,
    change_line: 4,
    count_visit: 4,
    cancel_order: 3,
    change_mind: 3,
    greet_customer: 10,
    rewrite_biography: 4,
    join_and_leave: 2,
    rename_product: 1,
    rework_product: 1,
    replace_product: 1,
    reprice: 5,
    swap_ranks: 2,
    rotate_ranks: 1,
    replace_player: 1,
    click: 6,
    correct_click: 3,
    forget_click: 3,
    redeem_coupon: 4,
    amend_contract: 4,
    follow_link: 3,
    ship: 6,
    import_file: 2,
    tidy_shelf: 4,
    set_any_type: 4,
    use_gift_card: 6,
}


def _new_sku(dice: Random) -> str:
    return f"SKU-{dice.randrange(10_000_000):07}"


def _scalar(connection: Connection, statement: LiteralString, *parameters: object) -> object:
    """Return the first column of the first row; None when there is none."""
    row = connection.execute(statement, parameters).fetchone()
    return row[0] if row else None

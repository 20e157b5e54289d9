-- What the shop holds when the demo begins; the same every time, because the random numbers are seeded.

select setseed(0.42);

insert into shop.customers (email, name, biography, preferences, joined_at)
select
    'customer' || n || '@example.org',
    (array['Ada', 'Björn', 'Chloé', '陈', 'Ольга', 'O''Neil'])[1 + n % 6] || ' ' || n,
    case when n % 4 > 0 then shop.noise(2400 + n % 1000) end,
    case when n % 3 > 0 then jsonb_build_object('colour', n % 7, 'history', shop.noise(2200)) else 'null' end,
    timestamptz '2024-01-01 00:00+00' + n * interval '7 hours 13 seconds'
from generate_series(1, 400) n;

-- A column added to a table that has rows: PostgreSQL rewrites none of them and keeps the default aside.
alter table shop.customers add column loyalty int not null default 100;

insert into shop.products (sku, name, price, weight, description, attributes, photo)
select
    'SKU-' || lpad(n::text, 4, '0'),
    'Product ' || n,
    (random() * 500)::numeric(10, 2),
    case n % 5 when 0 then null when 1 then 'NaN' else (random() * 1e6)::numeric / (10 ^ (n % 9))::numeric end,
    shop.noise(2500),
    jsonb_build_object('tags', jsonb_build_array('a', n, null, true)),
    case when n % 3 = 0 then decode(shop.noise(4400), 'hex') end
from generate_series(1, 1000) n;

insert into shop.stock
select warehouse, sku, 1000 + warehouse, timestamp '2024-06-01' + warehouse * interval '1 microsecond'
from shop.products, generate_series(1, 3) warehouse;

insert into shop."price.list"
select sku, valid_from, price from shop.products, unnest(array['-infinity', '0044-03-15 BC', '2024-01-01', 'infinity']::date[]) valid_from;

insert into shop.orders (customer_id, status, placed_at, note)
select
    1 + n % 400,
    (enum_range(null::shop.order_status))[1 + n % 5],
    timestamptz '2025-01-01 00:00+00' + n * interval '3 minutes',
    case when n % 5 = 0 then shop.noise(2100 + n % 500) end
from generate_series(1, 3000) n;

insert into shop.order_lines (order_id, line_no, sku, quantity, price)
select n, line_no, 'SKU-' || lpad((1 + (n * 7 + line_no) % 1000)::text, 4, '0'), 1 + n % 9, (random() * 500)::numeric(10, 2)
from generate_series(1, 3000) n, generate_series(1, 3) line_no;

insert into shop."Order"
select n, repeat('''"\`{}$,;', n % 4), 'shelf ' || n, n / 7.0, sqrt(n), jsonb_build_object('Group By', n)
from generate_series(1, 500) n;

insert into shop.ranking
select n, 'player ' || n, shop.noise(2300) from generate_series(1, 400) n;

insert into shop.clicks
select
    timestamptz '2025-03-01 00:00+00' + (n % 50) * interval '1 second',
    (array['/', '/cart', '', null])[1 + n % 4],
    (array['1.5', 'NaN', '-0', '0', 'Infinity'])[1 + n % 5]::real,
    case when n % 3 = 0 then '{"from" :  "search",  "from": 2}' end::json,
    case when n % 100 = 0 then shop.noise(2500) end
from generate_series(1, 1000) n;
insert into shop.clicks select * from shop.clicks;

insert into shop.shipments (region, state, label)
select (array['eu', 'uk', 'asia', 'us', 'moon'])[1 + n % 5], 'packed', case when n % 2 = 0 then shop.noise(2200) end
from generate_series(1, 500) n;

insert into shop.daily_visits
select date '2023-01-01' + n, page, n from generate_series(0, 800) n, unnest(array['/', '/cart', '/help']) page;

insert into shop.import_batches (file_name) values ('first.csv');
insert into shop.import_rows select 1, line, 'line ' || line from generate_series(1, 50) line;

insert into shop.coupons
select n, 'CODE-' || n, 1000, shop.noise(2100) from generate_series(1, 300) n;

insert into shop.contracts
select
    (array['de', 'fr', 'x'])[1 + n % 3],
    n,
    case when n % 10 = 0 then 'infinity' else date '1999-12-31' + n end,
    make_interval(months => n % 30, days => -n, secs => n / 8.0),
    shop.noise(2600)
from generate_series(1, 300) n;

insert into shop.long_links
select 'https://example.org/' || n || '/' || shop.noise(2300), n from generate_series(1, 100) n;

insert into shop.session_cache select gen_random_uuid() from generate_series(1, 10);

-- What an era knew of its tables ends with it, and what was read of them, but for what was built of it, which is history. What the lake
-- holds stays, and the cuts say what it is.
with
    windows as (delete from penstock.window where pipeline = %(name)s and state = 'planned'),
    looks as (delete from penstock.column_look where pipeline = %(name)s),
    states as (delete from penstock.table_state where pipeline = %(name)s),
    numbers as (delete from penstock.relation_attnums where pipeline = %(name)s),
    reads as (delete from penstock.load where pipeline = %(name)s and cause in ('first', 'columns', 'partitions'))
delete from penstock.table where pipeline = %(name)s

-- What was read of them goes with them, but for what was built of it, which is history. What the lake holds stays, and the cuts say
-- what it is.
with
    reads as (
        delete from penstock.load where pipeline = %(name)s and cause in ('first', 'columns', 'partitions')
    )
delete from penstock.table where pipeline = %(name)s

-- The metadata file that the catalog shows since our last cut, and with how many columns of the source: what a table with
-- nothing to do is compared with. Null where that was not written down.
alter table penstock.table
    add column shows text,
    add column lake_columns integer

-- Events and runs of maintenance from before a time.
with
    runs as (delete from penstock.maintenance where pipeline = %(name)s and started_at < %(before)s)
delete from penstock.event where pipeline = %(name)s and at < %(before)s

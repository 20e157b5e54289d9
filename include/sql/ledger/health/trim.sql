-- Samples and closed alarms from before a time.
with
    slots as (delete from penstock.slot_sample where pipeline = %(name)s and at < %(before)s),
    lakes as (delete from penstock.lake_sample where pipeline = %(name)s and at < %(before)s)
delete from penstock.alarm where pipeline = %(name)s and closed_at < %(before)s

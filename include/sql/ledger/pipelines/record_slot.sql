-- It ends the gap after the era before.
with
    gap as (
        update penstock.gap
        set upto_lsn = %(consistent_point)s, upto_time = %(source_time)s
        where pipeline = %(name)s and upto_lsn is null
    )
update penstock.pipeline
set consistent_point = %(consistent_point)s, position = %(consistent_point)s
where name = %(name)s and state = 'bootstrapping' and consistent_point is null

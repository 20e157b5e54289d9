-- Until when work that has a schedule was done; null where it never was. What a dry run of maintenance did does not count.
select
    (
        select max(m.ended_at) from penstock.maintenance as m where m.pipeline = %(name)s and not m.dry_run and m.report is not null
    ) as maintained_at,
    (select max(f.upto_time) from penstock.changelog_fill as f where f.pipeline = %(name)s) as filled_upto,
    (select max(v.finished_at) from penstock.verification as v where v.pipeline = %(name)s) as verified_at,
    (select max(s.at) from penstock.slot_sample as s where s.pipeline = %(name)s) as sampled_at,
    (select min(t.shows) from penstock.table as t where t.pipeline = %(name)s) as lake_file

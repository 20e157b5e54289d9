select attempt from (
    select c.attempt, row_number() over (order by c.number desc) as place from penstock.cut as c where c.pipeline = %(name)s
) as cuts
where place = 1
union
select merge_attempt from penstock.pipeline where name = %(name)s and merge_attempt is not null
union
select run from penstock.load where pipeline = %(name)s and state in ('copying', 'building', 'ready') and run is not null

select version, from_lsn, sent as relation, case when mapped then jsonb_build_object('attnums', attnums, 'key', key) end as mapping
from penstock.relation
where pipeline = %(name)s
order by oid, version, from_lsn

-- What an earlier run has read of these tables, and did not get into the lake.
delete from penstock.load
where
    pipeline = %(name)s and oid = any(%(oids)s::oid[]) and copy_id <> %(copy_id)s
    and case
        when %(first)s then cause = 'first' and state in ('copying', 'ready')
        else cause in ('columns', 'partitions') and state = 'copying'
    end

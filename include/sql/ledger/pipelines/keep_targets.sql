-- What the lake's tables were called when the era ended: a copy of the next one finds the name that readers know.
update penstock.pipeline as p
set
    former_targets = p.former_targets || coalesce(
        (
            select jsonb_object_agg(t.oid, to_jsonb(t.target))
            from penstock.table as t
            where t.pipeline = p.name and t.state <> 'dropped' and t.left_lsn is null
        ),
        '{}'
    )
where p.name = %(name)s

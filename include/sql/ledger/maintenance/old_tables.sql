select namespace, name, location, seen_at from penstock.old_table where pipeline = %(name)s order by seen_at, namespace, name

delete from penstock.maintenance where pipeline = %(name)s and started_at < %(before)s

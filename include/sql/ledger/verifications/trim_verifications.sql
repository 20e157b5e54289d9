delete from penstock.verification where pipeline = %(name)s and started_at < %(before)s

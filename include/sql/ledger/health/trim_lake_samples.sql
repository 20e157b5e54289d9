delete from penstock.lake_sample where pipeline = %(name)s and at < %(before)s

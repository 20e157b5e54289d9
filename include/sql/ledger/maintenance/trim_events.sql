delete from penstock.event where pipeline = %(name)s and at < %(before)s

delete from penstock.slot_sample where pipeline = %(name)s and at < %(before)s

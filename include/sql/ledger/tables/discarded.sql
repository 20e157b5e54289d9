update penstock.table
set discard = false, snapshot_id = null
where pipeline = %(name)s and oid = %(oid)s and state = 'dropped' and discard

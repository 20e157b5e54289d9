create index load_of_copy on penstock.load (pipeline, copy_id, oid)

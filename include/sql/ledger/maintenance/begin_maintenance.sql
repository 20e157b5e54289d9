insert into penstock.maintenance (pipeline, attempt, dry_run) values (%(name)s, %(attempt)s, %(dry_run)s)

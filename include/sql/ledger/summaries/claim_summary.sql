-- One run takes a summary on; another may only after a while, if that one was killed.
update penstock.summary
set due_at = %(due)s, claimed_at = %(at)s, sent_at = null
where
    pipeline = %(name)s
    and (
        due_at < %(due)s
        or (due_at = %(due)s and sent_at is null and coalesce(claimed_at < %(at)s - interval '10 minutes', true))
    )

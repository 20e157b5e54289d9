update penstock.summary
set claimed_at = null, sent_at = %(sent_at)s
where pipeline = %(name)s and due_at = %(due)s

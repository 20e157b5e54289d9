-- One that is done, or with `what` null all that other runs of the task have left.
delete from penstock.work
where
    pipeline = %(name)s and dag = %(dag)s and task = %(task)s
    and case when %(what)s::text is null then run_id <> %(run_id)s else what = %(what)s end

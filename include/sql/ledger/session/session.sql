-- A frozen process must not hold the pipeline's row for ever, and a dead network must be noticed. `penstock.task` tells whose rows these are.
select
    set_config('timezone', 'UTC', false),
    set_config('lock_timeout', '30s', false),
    set_config('statement_timeout', '60s', false),
    set_config('idle_in_transaction_session_timeout', '60s', false),
    set_config('penstock.task', %(task)s, false)

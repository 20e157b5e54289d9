-- The attnums of the columns that the source has, in their order.
create function penstock.attnums(columns jsonb) returns integer[] language sql immutable strict as
$$
    select coalesce(array_agg((c.value ->> 'attnum')::integer order by (c.value ->> 'attnum')::integer), '{}')
    from jsonb_array_elements(columns) as c
    where not coalesce((c.value ->> 'dropped')::boolean, false)
$$

-- What is accepted of a table, or of what is being built of it, in one: its shape, the open questions and the partitions that are gone.
create function penstock.accepted(pipeline text, oid oid, load text, shape jsonb) returns jsonb language sql stable as
$$
    select jsonb_build_object(
        'shape', $4,
        'questions', array(
            select to_jsonb(q) - '{pipeline,oid,load,number}'::text[] from penstock.open_question as q
            where q.pipeline = $1 and q.oid = $2 and q.load = $3
            order by q.number
        ),
        'gone', array(
            select to_jsonb(d) - '{pipeline,load,number,leaf}'::text[] || jsonb_build_object('oid', d.leaf)
            from penstock.departed_partition as d
            where d.pipeline = $1 and d.oid = $2 and d.load = $3
            order by d.number
        )
    )
$$

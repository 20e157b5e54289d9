-- After which position a copy under this snapshot needs windows: the first one with a change that the snapshot may not have
-- seen, wherever in the present era that lies, for a commit can be in the WAL, and in a window, before snapshots see it. By
-- xid that is exact; by position it would be a guess.
create function penstock.needed_after(of_pipeline text, snapshot text) returns pg_lsn language sql stable as
$$
    select
        coalesce(
            (
                select min(w.from_lsn)
                from penstock.window as w
                where
                    w.pipeline = p.name and w.era = p.era
                    and w.max_xid >= split_part(needed_after.snapshot, ':', 1)::bigint
            ),
            p.position
        )
    from penstock.pipeline as p
    where p.name = of_pipeline
$$

"""### Rebuild tables from the landing zone, in place or as of any position: by hand

**Does** nothing but say what it would do (which copy, how many windows, rows and bytes), until it is triggered with
`dry_run` set to false. Then, for each of the `tables` (`schema.table`): a fresh table from the copy and the windows since, chunk by
chunk -> in place (`shadow` empty) one
cut in which it takes the table's name; with a `shadow` suffix the table `<table>__<suffix>`, which nothing changes any more.

**For** a wrong edit by hand on the lake, a changed mapping, a changed policy (`skip_transactions`, `on_misfit`), and for a
look at a table as it was: `upto` is an LSN such as `16/B374D848`, or a time such as `2026-11-21T09:30:00Z`, by which everything
up to the last commit at or before it is meant. It begins with the newest copy, or with the newest one at or before `from`. The source is not asked for anything.

**Meanwhile** capture and merge continue, for these tables as well.

**Safe to repeat, to clear, to kill.** Trigger it again with the same params: it continues with the chunk that it was at.
Progress is in the log, on the pipeline's page and in `penstock status`. `<pipeline>.resync` with `abandon` ends one half-way.

**If it fails:** `range-unavailable` names what the landing zone still holds. A paused table is refused with
`table-not-ready`: what is landed may not fit it, so resync it.
"""

from collections.abc import Mapping
from typing import Any

from airflow.sdk import DAG, Param, task

from penstock.config.model import Pipeline
from penstock.flow.context import Context
from penstock.orchestration.dags import dag_arguments, dags, dry_run
from penstock.orchestration.table_choices import tables_param
from penstock.orchestration.task_groups import rebuilding
from penstock.orchestration.tasks import SOURCE_POOL, working


def asked(params: Mapping[str, Any]) -> Any:
    """Return the replay that a DAG's params ask for; an empty text means nothing."""
    from penstock.flow.load.replay_request import Replay

    return Replay(
        tables=tuple(params["tables"] or ()),
        from_=params["from"] or None,
        upto=params["upto"] or None,
        shadow=params["shadow"] or None,
    )


def build(pipeline: Pipeline) -> DAG:
    """Return the DAG of one pipeline."""
    with DAG(
        **dag_arguments(pipeline, "replay", __doc__),
        schedule=None,
        params={
            "tables": tables_param(pipeline, "tables to rebuild, as schema.table"),
            "from": Param(
                None, type=["null", "string"], description="begin with the newest copy at or before this LSN or time"
            ),
            "upto": Param(
                None, type=["null", "string"], description="a shadow's LSN or time; empty means all that is landed"
            ),
            "shadow": Param(
                None,
                type=["null", "string"],
                pattern=r"^[A-Za-z0-9_]{0,60}$",
                description="make <table>__<suffix>; empty replaces the table itself",
            ),
            "dry_run": dry_run(),
        },
    ) as dag:

        @task.short_circuit(pool=SOURCE_POOL)
        def look(**context_: Any) -> bool:
            """Say what would be done; bad input and a dry run end here."""
            from penstock.flow.load.replay_request import sources

            with working(pipeline) as ctx:
                for source in sources(ctx, asked(context_["params"])):
                    ctx.progress(source.line())
            return not context_["params"]["dry_run"]

        def build_from_landing(ctx: Context, context_: Any, submit: Any) -> list[str]:
            """Build the tables that are asked for from a copy and the windows since."""
            from penstock.flow.load import run as rebuild

            return rebuild.replay(ctx, asked(context_["params"]), submit)

        look() >> rebuilding(pipeline, build_from_landing)
    return dag


globals().update(dags("replay", build))

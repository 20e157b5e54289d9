"""The pipeline file: one YAML document that says what flows from where to where.

The models below are the whole vocabulary; an unknown or ill-typed key, and a value that Airflow, Spark or PostgreSQL would
refuse later, is refused with its file, line and next step. Secrets are never in this file: it names Airflow connections.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, ValidationError, model_validator

from penstock.config.messages import problem
from penstock.config.policy import Health
from penstock.config.store_options import refuse_options
from penstock.config.validators import (
    ConnectionId,
    Cron,
    Memory,
    Name,
    NthShare,
    Place,
    Properties,
    Shape,
    SparkConf,
    StoreOptions,
    TablePattern,
    Target,
)
from penstock.config.yaml_document import Document, InvalidFileError
from penstock.lsn import Lsn
from penstock.units import Bytes, Seconds, SecondsOrZero, Section, Share, count, size_within, span_within

CHANGES = ("insert", "update", "delete", "truncate")
"""The kinds of change that a publication can publish, in PostgreSQL's order."""
LsnText = Annotated[
    str,
    Shape("[0-9A-Fa-f]{1,8}/[0-9A-Fa-f]{1,8}", "an LSN in quotes, such as '16/B374D848'"),
    AfterValidator(lambda text: str(Lsn.parse(text))),
]
ServerSeconds = Annotated[int, span_within(most=24 * 86400)]
"""PostgreSQL counts its timeouts in milliseconds, of which it takes 24 days."""
Change = Literal["insert", "update", "delete", "truncate"]
Changes = Annotated[
    list[Change], Field(min_length=1), AfterValidator(lambda kinds: sorted(set(kinds), key=CHANGES.index))
]
Many = Annotated[int, count(1, 1000)]


class Source(Section):
    """Say which database is read, through which publication and slot."""

    connection: ConnectionId = "penstock_source"
    reader_connection: ConnectionId | None = None
    """The same database as a role that may read the tables and nothing else; it reads them in place of the role above."""
    read_timeout: ServerSeconds = 86400
    """Give up a read of one table, or of one range of it, after so long."""
    publication: Name | None = None
    slot: Name | None = None
    adopt: bool = False
    """Take over an existing publication or slot of these names instead of refusing."""
    publish: Changes = ["insert", "update", "delete", "truncate"]
    """The kinds of change that the publication is meant to publish; fewer is an alarm."""
    origin: Literal["any", "none"] = "any"
    """`none` leaves out every change that came from another server (PostgreSQL 16+)."""
    skip_origins: list[str] = []
    """Leave out the changes of these replication origins (all versions)."""
    ddl_trigger: bool = False
    """Read what an event trigger at the source tells of each command of DDL; a superuser installs it there."""
    slot_timeout: ServerSeconds = 120
    """Wait this long for transactions that block slot creation."""


class Patterns(Section):
    """Choose tables by patterns `schema.table`, in which `*` matches within one name."""

    include: list[TablePattern] = Field(min_length=1)
    exclude: list[TablePattern] = []


OnChange = Literal["follow", "resync", "pause"]


class TablePolicy(Patterns):
    """Say something else of some tables than of the others; the first entry that chooses a table holds."""

    on_change: OnChange


class ColumnChoice(Patterns):
    """Choose another type in the lake for columns of some tables; the first entry that chooses a column holds."""

    columns: list[str] = Field(min_length=1)
    """The columns, by their names at the source."""
    type: Literal["string"]
    """`string` keeps the server's exact text of an array, of whatever dimensions."""


class Tables(Patterns):
    """Choose the tables, and say what follows when one joins or leaves."""

    on_added: Literal["copy", "wait"] = "copy"
    """`copy` wakes `resync` for a table that joined after bootstrap; `wait` leaves that to a person."""
    on_removed: Literal["keep", "drop"] = "keep"
    """`keep` leaves the lake table of a table that left as it is then; `drop` lets maintenance drop it."""
    on_change: OnChange = "follow"
    """`follow` gives the lake's table the columns that the source's has where metadata can; `resync` copies a table again after
    every change but an added column, as `follow` does where it must; `pause` leaves that to a person."""
    policies: list[TablePolicy] = []
    """Another `on_change` for some tables."""
    columns: list[ColumnChoice] = []
    """Another type in the lake for some columns of arrays; a table that the lake has already takes it with its next copy."""


class Capture(Section):
    """Bound one run and one window of capture."""

    schedule: Cron | None = "* * * * *"
    max_wal_bytes: Bytes = 256 << 20
    window_seconds: Seconds = 30
    """What the size of a window aims at: it follows the time that the last windows took."""
    read_ahead: bool = True
    """Let the source decode the next window of a backlog while this one is written."""
    time_budget: Seconds = 300
    every: Seconds | None = None
    """Within a run of the schedule capture again this long after the last capture began, while the budget lasts."""
    statement_timeout: ServerSeconds = 1800
    work_mem: Annotated[int, size_within(64 << 10, (2 << 40) - 1)] = 256 << 20
    """Memory for decoding on the source, per session (`logical_decoding_work_mem` and `work_mem`)."""
    batch_bytes: Annotated[int, size_within(most=1 << 30)] = 4 << 20
    """Client memory for one batch of messages."""


class Copy(Section):
    """Bound the initial load and every reload."""

    parallel: Many = 4
    """Connections that read the source at once."""
    range_bytes: Bytes = 256 << 20
    """Heap bytes that one task reads at most."""


class Landing(Section):
    """Say where the staging Parquet lies: a folder or an object-store URI."""

    uri: Place = "${PENSTOCK_HOME}/.local/landing"
    options: StoreOptions = {}
    retention: Seconds | None = 30 * 86400
    """Keep merged windows and loaded copies for so long, for replays and changelogs; null keeps them for ever."""

    @model_validator(mode="after")
    def _options_of_the_store(self) -> Landing:
        try:
            refuse_options(self.uri, self.options)
        except ValueError as error:
            raise ValueError(f"options.{error}") from None
        return self


class Lake(Section):
    """Say where the tables lie: Spark's catalog name, the namespace, and the target's name."""

    catalog: Name = "lake"
    connection: ConnectionId = "penstock_catalog"
    namespace: Name | None = None
    target: Target = "{namespace}.{schema}.{table}"
    properties: Properties = {}
    """Extra Iceberg table properties for new tables."""
    on_dropped_column: Literal["keep", "drop"] = "keep"
    """`keep` leaves a column that the source has dropped in the lake's table, with NULL in rows written since."""
    on_renamed_table: Literal["follow", "keep"] = "follow"
    """`follow` gives the lake's table the name of the source's in the next cut; `keep` leaves it the name that readers know."""
    on_dropped_partition: Literal["follow", "keep"] | None = None
    """`follow` removes the rows of a partition that is dropped, detached or truncated, `keep` leaves them; null copies the table."""
    wait: Seconds = 3600
    """How long a merge waits for maintenance to leave the lake's tables, and the other way round."""


class Merge(Section):
    """Say when staged windows are merged and what happens to values and rows that do not fit."""

    schedule: Cron | None = "*/5 * * * *"
    """Merge at these times too, besides whenever capture has landed something."""
    idle_cut: Seconds = 3600
    """Publish a cut this long after the last one even when nothing has changed, so that readers see time pass."""
    linger: Seconds | None = None
    """Keep the Spark application of a scheduled merge for so long after its last cut, for what captures land meanwhile."""
    on_conflict: Literal["fail", "continue"] = "continue"
    """`fail` pauses a table on an update or delete of an absent row; `continue` counts it."""
    on_misfit: Literal["keep", "fail"] = "keep"
    """`keep` puts the exact text into `_misfits`; `fail` pauses the table."""
    rebuild_bytes: Bytes = 256 << 20
    """Landing bytes per table that one run of a rebuild brings into the fresh table, its copy aside."""
    skip_transactions: list[LsnText] = []
    """Leave out the transactions with these commit LSNs."""


class Maintain(Section):
    """Say when and how far tables are compacted, and for how long what is old is kept."""

    schedule: Cron | None = "30 2 * * *"
    time_budget: Seconds = 3600
    """Begin no further table after so long; the others come first next time."""
    deleted_share: Share = 0.1
    """Rewrite a data file when this part of its rows is deleted."""
    small_files: Annotated[int, count(2, 1_000_000)] = 5
    """Rewrite small files when so many can be put together."""
    file_bytes: Bytes | None = None
    """The size of a rewritten file; null is the table's own `write.target-file-size-bytes` (512 MiB)."""
    cuts: Seconds = 86400
    """Keep what every cut shows readable for so long."""
    daily_cuts: Seconds = 30 * 86400
    """Keep what the last cut of each day (UTC) shows readable for so long."""
    orphans: Annotated[int, span_within(least=86400)] = 3 * 86400
    """Delete files that belong to nothing when they are older: longer than any merge may take, a day at least."""
    old_tables: Seconds = 7 * 86400
    """Grace period before replaced tables are dropped with their files."""
    history: Seconds = 90 * 86400
    """Keep events, samples, closed alarms and reports in the ledger for so long."""
    patience: Seconds = 600
    """Wait so long for the publication of a merge that is prepared; after that it is merged again."""


class Changelog(Section):
    """Say which tables have a changelog, and when its intervals are filled."""

    schedule: Cron | None = "0 0 * * *"
    """Each run fills the interval between two of these times; null: only when asked for."""
    tables: Patterns = Patterns(include=["*.*"])
    """The tables of the pipeline that have one."""
    slack: SecondsOrZero = 30
    """Take an interval as captured this long after its end by the source's clock: commits take so long to reach the WAL."""
    wait: Seconds = 6 * 3600
    """Wait this long for the interval's windows to be captured."""
    max_active_runs: Many = 1
    """Intervals of the schedule that may be waited for and filled at once; a backfill says its own."""


class Verify(Section):
    """Say when source and lake are compared at one exact position, how much of them at a time, and what follows."""

    schedule: Cron | None = None
    share: NthShare = "1/30"
    """`1/N`: every run looks at another N-th of each table's keys, so that N runs see every row; `1/1` is all of it."""
    tables: list[TablePattern] = ["*.*"]
    """Patterns of the tables that a scheduled run looks at."""
    whole_below: Bytes = 16 << 20
    """A table with a smaller heap is compared whole in every run."""
    wait: Seconds = 3600
    """Wait this long for capture and merge to come to the position."""
    on_difference: Literal["alarm", "resync"] = "alarm"
    """`alarm` only sends an alert; `resync` also copies the tables that differ again."""

    @property
    def shares(self) -> int:
        """Return the number of runs that see every row."""
        return int(self.share.removeprefix("1/"))


class Spark(Section):
    """Say how Spark is started."""

    connection: ConnectionId = "penstock_spark"
    driver_memory: Memory = "1g"
    parallel_tables: Many = 4
    task_memory: Bytes = 512 << 20
    """Memory of one table's merge outside of Spark's heap; what needs more spills to disk."""
    conf: SparkConf = {}


class Ledger(Section):
    """Name the control database that holds the schema `penstock`."""

    connection: ConnectionId = "penstock_ledger"


class Pipeline(Section):
    """Hold one pipeline: one publication and one slot of one database, into one namespace of the lake."""

    version: Literal[1] = 1
    name: Name
    source: Source = Source()
    tables: Tables
    capture: Capture = Capture()
    copy_: Copy = Field(default=Copy(), alias="copy")
    landing: Landing = Landing()
    lake: Lake = Lake()
    merge: Merge = Merge()
    changelog: Changelog = Changelog()
    maintain: Maintain = Maintain()
    verify: Verify = Verify()
    spark: Spark = Spark()
    ledger: Ledger = Ledger()
    health: Health = Health()

    @property
    def slot(self) -> str:
        """Name the replication slot."""
        return self.source.slot or f"penstock_{self.name}"

    @property
    def publication(self) -> str:
        """Name the publication."""
        return self.source.publication or f"penstock_{self.name}"

    @property
    def namespace(self) -> str:
        """Name the lake's namespace."""
        return self.lake.namespace or self.name

    @property
    def lake_place(self) -> str:
        """Name where its tables lie, with its table of cuts: two pipelines may not have one place."""
        return f"{self.lake.connection} {self.lake.catalog}.{self.namespace}"

    def target(self, schema: str, table: str) -> tuple[str, ...]:
        """Name the target table of a source table, as the parts of its identifier below the catalog.

        Dots inside a source name become underscores: Iceberg's catalogs cannot distinguish `a.b` from `a`.`b`.
        """
        values = {
            "namespace": self.namespace,
            "schema": schema.replace(".", "_"),
            "table": table.replace(".", "_"),
        }
        return tuple(part.format(**values) for part in self.lake.target.split("."))

    def changelog_target(self, target: tuple[str, ...]) -> tuple[str, ...]:
        """Name the changelog of a target table."""
        return (*target[:-1], f"{target[-1]}__changelog")


def load_pipeline(path: Path, environment: Mapping[str, str]) -> Pipeline:
    """Read and check one pipeline file; `${NAME}` in a value is taken from the environment.

    Raises ConfigError("config-invalid") that names file, line, what was expected and the nearest valid key.
    """
    document = Document.read(path)
    if isinstance(landing := document.values.setdefault("landing", {}), dict):
        landing.setdefault("uri", Landing.model_fields["uri"].default)  # the one default that names a variable
    try:
        return Pipeline.model_validate(document.expanded(environment))
    except ValidationError as error:
        entries = error.errors(include_url=False, include_input=False)
        raise InvalidFileError([problem(document, Pipeline, each, environment) for each in entries]) from None

"""Stories of tables: statements of the source, each a transaction of its own, and what it may cost the pipeline to follow them."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.pipeline_env import PipelineEnv

Cost = Literal["metadata", "columns", "leaves", "copy"]
"""Nothing is read at the source again; some columns, or some partitions, are; the table is."""
HEAD = re.compile(r"\[(?P<cost>\w+)(?:, told (?P<told>\w+))?(?: (?P<made>[A-Z_]+))?(?: since (?P<since>\d+))?\] ")


@dataclass(frozen=True)
class Story:
    """Statements about a table {t} that was `made`, all of one window; its cost; and that with the event trigger, where it differs."""

    steps: tuple[str, ...]
    made: str
    cost: Cost = "metadata"
    with_trigger: Cost | None = None
    since: int = 0


def table(made: str, words: Mapping[str, str], texts: Mapping[str, str]) -> dict[str, Story]:
    """Return the stories that are told by texts.

    ` / ` ends each statement, and words in capitals stand for what `words` says. A text may begin with what it costs, as in
    `[copy, told metadata PARTS since 17]`: with the trigger, of a table that is made by the word's text, on servers from there on.
    """
    found = {}
    for name, text in texts.items():
        head = HEAD.match(text)
        said: dict[str, Any] = head.groupdict() if head else {}
        found[name] = Story(
            spelt(text[head.end() :] if head else text, words),
            words[said["made"]] if said.get("made") else made,
            said.get("cost", "metadata"),
            said.get("told"),
            int(said.get("since") or 0),
        )
    return found


def spelt(text: str, words: Mapping[str, str]) -> tuple[str, ...]:
    """Return the statements of a story's text."""
    return tuple(re.sub(r"\b[A-Z][A-Z0-9_]*\b", lambda word: words.get(word[0], word[0]), text).split(" / "))


@dataclass(frozen=True)
class Group:
    """Stories of one pipeline, and what else is to be seen of them than that lake and source are equal, and at which cost.

    `first` happens before the tables are made, and `later` to each of them when all is equal. `waits` are the slugs with which
    tables wait after the capture, `reads` the columns that are read again; `keeps` means that no file of old rows is written again.
    """

    stories: Mapping[str, Story]
    first: str = ""
    later: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    triggers: tuple[bool, ...] = (False, True)
    waits: Mapping[str, str | None] | None = None
    reads: Mapping[str, set[str]] = field(default_factory=dict)
    keeps: bool = False
    quick: bool = False


def tell(env: PipelineEnv, group: Group, *, trigger: bool) -> list[str]:
    """Bootstrap a table per story, let all of them happen in one window, and catch up; return what is not as it should be."""
    if group.first:
        env.sql(group.first)
    env.settings |= group.settings
    told = {name: story for name, story in group.stories.items() if story.since <= env.source.server.major}
    begin(env, told, trigger=trigger)
    copied, files = env.copies(), {name: env.data_files(name) for name in told if group.keeps}
    for name, story in told.items():
        happen(env, name, story.steps)
    env.land()
    slugs = {table.name: table.paused_slug for table in env.tables}
    env.merge()
    catch_up(env)
    found, read, exactly = costs(env, copied), columns_read(env), env.source.server.major == 16
    return [
        *(f"after the capture: {slugs}" for _ in "x" if group.waits is not None and slugs != group.waits),
        *(
            f"{name} cost {found[name]}, not {cost}"
            for name, cost in wanted(told, trigger=trigger).items()
            if found[name] != cost
        ),
        # a server may write the catalog's rows of other columns anew with a change of type: these are in doubt, too
        *(
            f"{name} read {read.get(name, set())}"
            for name, each in group.reads.items()
            if not each <= read.get(name, set()) or (exactly and each != read.get(name, set()))
        ),
        *(f"{name} has lost files" for name, known in files.items() if not known <= env.data_files(name)),
        *env.wrong(),
        *([] if env.merge() is None else ["a merge was left to do"]),
        *(then(env, group) if group.later else []),
    ]


def then(env: PipelineEnv, group: Group) -> list[str]:
    """Let something happen to each table later; return what is wrong then."""
    for name in group.stories:
        happen(env, name, (group.later,))
    env.follow()
    return env.wrong()


def begin(env: PipelineEnv, stories: Mapping[str, Story], *, trigger: bool) -> None:
    """Bootstrap a pipeline with a table per story."""
    for name, story in stories.items():
        happen(env, name, (story.made,))
    env.bootstrap(trigger=trigger)
    env.capture()


def happen(env: PipelineEnv, name: str, steps: Iterable[str]) -> None:
    """Run the statements on one connection, so that a transaction may have several."""
    known = {"t": name if name.isidentifier() else quoted(name), "p": env.ctx.pipeline.publication}
    with env.source.connect() as conn:
        for step in steps:
            conn.execute(step.format(**known).encode())


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def catch_up(env: PipelineEnv) -> None:
    """Let captures, merges and resyncs run until nothing is left."""
    for _ in range(2):
        env.follow()
        env.wake()
    env.follow()


def costs(env: PipelineEnv, copied: set[tuple[str, int]]) -> dict[str, Cost]:
    """Return by table what was read at the source since there were these copies."""
    found: dict[str, Cost] = {table.name: "metadata" for table in env.tables}
    names = {table.oid: table.name for table in env.tables}
    for fetch in env.ctx.ledger.loads.fetches(env.name):
        if fetch.oid in names:
            found[names[fetch.oid]] = "columns" if fetch.stays is None else "leaves"
    for _, oid in env.copies() - copied:
        if oid in names:
            found[names[oid]] = "copy"
    return found


def columns_read(env: PipelineEnv) -> dict[str, set[str]]:
    """Return the columns that were read from the source again, by table."""
    names = {table.oid: table.name for table in env.tables}
    fetches = env.ctx.ledger.loads.fetches(env.name)
    return {names[each.oid]: {column for file in each.files for column in file.columns} for each in fetches}


def wanted(stories: Mapping[str, Story], *, trigger: bool) -> dict[str, Cost]:
    """Return what each table should cost."""
    return {name: (trigger and story.with_trigger) or story.cost for name, story in stories.items()}

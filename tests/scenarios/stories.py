"""Stories of tables: statements of the source, each a transaction of its own, and what it may cost the pipeline to follow them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from penstock.flow.verify.compare import compare
from tests.pipeline_env import PipelineEnv

Cost = Literal["metadata", "columns", "leaves", "copy"]
"""Nothing is read at the source again; some columns, or some partitions, are; the table is."""


@dataclass(frozen=True)
class Story:
    """Statements about a table {t} that was `made`, all of one window; its cost; and that with the event trigger, where it differs."""

    steps: tuple[str, ...]
    cost: Cost = "metadata"
    made: str = ""
    with_trigger: Cost | None = None


def spelt(text: str, words: Mapping[str, str]) -> tuple[str, ...]:
    """Return the statements of a story's text: ` / ` ends each, and words in capitals stand for what `words` says."""
    return tuple(re.sub(r"\b[A-Z][A-Z0-9_]*\b", lambda word: words.get(word[0], word[0]), text).split(" / "))


def stories(
    texts: Mapping[str, str],
    words: Mapping[str, str],
    *,
    cost: Cost = "metadata",
    made: str = "",
    with_trigger: Cost | None = None,
) -> dict[str, Story]:
    """Return a story for each text, by its name, all of one cost and of tables that are made alike."""
    return {name: Story(spelt(text, words), cost, made, with_trigger) for name, text in texts.items()}


def tell(env: PipelineEnv, stories: Mapping[str, Story], made: str, *, trigger: bool) -> dict[str, Cost]:
    """Bootstrap a table per story, let all of them happen in one window, and catch_up; return what each has cost."""
    begin(env, stories, made, trigger=trigger)
    copied = env.copies()
    for name, story in stories.items():
        happen(env, name, story.steps)
    catch_up(env)
    return costs(env, copied)


def begin(env: PipelineEnv, stories: Mapping[str, Story], made: str, *, trigger: bool) -> None:
    """Bootstrap a pipeline with a table per story."""
    for name, story in stories.items():
        env.sql((story.made or made).format(t=name))
    env.bootstrap(trigger=trigger)
    env.capture()


def happen(env: PipelineEnv, name: str, steps: tuple[str, ...]) -> None:
    """Run the statements on one connection, so that a transaction may have several."""
    with env.source.connect() as conn:
        for step in steps:
            conn.execute(step.format(t=name).encode())


def catch_up(env: PipelineEnv) -> None:
    """Let captures, merges and resyncs run until nothing is left."""
    for _ in range(2):
        env.follow()
        env.wake()
    env.follow()


def wrong(env: PipelineEnv) -> list[str]:
    """Return what is not as it should be: tables that wait, and tables that differ from the source."""
    records = [table for table in env.tables if table.state != "dropped"]
    waiting = [f"{each.name} is {each.state}: {each.paused_reason}" for each in records if each.state != "ready"]
    found = compare(env.ctx, records)
    return [*waiting, *(line for table in found.tables if not table.equal for line in table.lines())]


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


def unlike(stories: Mapping[str, Story], found: Mapping[str, Cost], *, trigger: bool) -> dict[str, tuple[Cost, Cost]]:
    """Return what tables have cost, and should have, where the two differ."""
    wanted = {name: (trigger and story.with_trigger) or story.cost for name, story in stories.items()}
    return {name: (found[name], cost) for name, cost in wanted.items() if found[name] != cost}

"""`python -m torture`: random changes, faults and copies on real servers, compared after each round; see CONTRIBUTING.md."""

from __future__ import annotations

import itertools
import random
import signal
import time
from collections.abc import Iterator
from typing import Annotated

import typer

from stack.paths import Project
from torture.landed import search
from torture.report import Report
from torture.rounds import Mix, Torture
from torture.stand import stand

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

Minutes = Annotated[float, typer.Option(help="Begin no further round after so long.")]
Seed = Annotated[int | None, typer.Option(help="Repeat a run.")]
Rounds = Annotated[int | None, typer.Option(help="Do so many rounds at most.")]
Only = Annotated[str, typer.Option(help="Rules of the grammar to choose from, with commas between.")]
Safe = Annotated[bool, typer.Option("--safe", help="Only what every mirror follows or notices.")]
Landed = Annotated[bool, typer.Option("--landed", help="Without Spark: judge the landing zone, many short rounds.")]
Published = Annotated[bool, typer.Option("--published", help="Leave the publication as it is.")]
Major = Annotated[int | None, typer.Option("--postgres", help="Another version for the source: 14, 15, 17 or 18.")]
Calm = Annotated[bool, typer.Option("--calm", help="No faults.")]


@app.command(help=__doc__)
def main(
    minutes: Minutes = 20,
    seed: Seed = None,
    rounds: Rounds = None,
    only: Only = "",
    safe: Safe = False,
    calm: Calm = False,
    landed: Landed = False,
    published: Published = False,
    postgres: Major = None,
) -> None:
    """Run, report, and exit with 1 where anything was found."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # asked to stop is asked to clean up
    chosen = seed if seed is not None else random.SystemRandom().randrange(10**6)
    log = Project.here().root / ".local" / "torture" / f"seed-{chosen}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.unlink(missing_ok=True)
    report = Report(chosen, log, lambda line: print(f"{time.strftime('%H:%M:%S')} {line}", flush=True))
    report.say(f"seed {chosen}; everything that is done: {log}")
    rules = tuple(filter(None, only.split(",")))
    mix = Mix(full=not safe, faults=not calm, publication=not published, only=rules, lake=not landed)
    apart, told, drop = (bool(chosen >> bit & 1) for bit in range(3))
    with stand("torture", apart=apart, told=told, drop=drop, spark=not landed, major=postgres) as env:
        try:
            if landed:
                search(report, env.source, env, mix, more=_more(minutes * 60, rounds))
            else:
                Torture(env, report, mix).run(seconds=minutes * 60, rounds=rounds)
        except KeyboardInterrupt:
            report.say("interrupted")
        finally:
            for line in report.lines():
                report.say(line)
                report.write(line)
    raise typer.Exit(1 if report.findings else 0)


def _more(seconds: float, rounds: int | None) -> Iterator[bool]:
    """Say that there is to be another round until the time or their number is over."""
    deadline = time.monotonic() + seconds
    for number in itertools.count():
        if time.monotonic() > deadline or number == rounds:
            return
        yield True


if __name__ == "__main__":
    app()

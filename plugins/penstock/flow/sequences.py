"""What bootstrap and recovery do, step by step: written once, for the command line and for the DAGs.

A step may be killed anywhere and run again, for each looks at what is there. `carry_out` runs the steps in this process;
`penstock.orchestration.task_groups` makes tasks of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.flow.context import Context

if TYPE_CHECKING:
    from penstock.flow.spark_job import Submit


@dataclass(frozen=True, slots=True)
class SourceStep:
    """Ask or change the source, without Spark; `name` is its task's."""

    name: str
    run: Callable[[Context], object]


@dataclass(frozen=True, slots=True)
class CopyStep:
    """Copy every table that has no copy yet (`bootstrap.copy`)."""

    name: str


@dataclass(frozen=True, slots=True)
class MergeStep:
    """Merge what is due and publish it as one cut, in two tasks of these names.

    The `last` merge of an era takes what a halted pipeline has landed; whoever recovers may leave it out. One that
    `lingers` publishes its cuts itself, where the pipeline says so.
    """

    prepare: str
    publish: str
    last: bool = False
    lingers: bool = False


Step = SourceStep | CopyStep | MergeStep


def _check(ctx: Context) -> None:
    """Check, report every finding as progress, and raise SourceError("preflight-failed") if one forbids a bootstrap."""
    from penstock.flow import check

    check.require(ctx)


def _prepare(ctx: Context) -> None:
    """Migrate the ledger, register the pipeline, create or adopt its publication."""
    from penstock.flow.load import bootstrap

    bootstrap.prepare(ctx)


def _new_era(ctx: Context) -> None:
    """Drop the remains of our slot, see that the publication is there, and leave the era behind; then copy."""
    from penstock.flow.recover import run as recover

    recover.new_era(ctx)


_FIRST_CUT = (CopyStep("copy"), MergeStep("load", "publish"))

BOOTSTRAP: tuple[Step, ...] = (
    SourceStep("check", _check),
    SourceStep("publication", _prepare),
    *_FIRST_CUT,
)
RECOVERY: tuple[Step, ...] = (  # after `recover.start`
    MergeStep("merge", "publish_last", last=True),
    SourceStep("new_era", _new_era),
    *_FIRST_CUT,
)


def carry_out(ctx: Context, steps: Iterable[Step], submit: Submit, *, merge_first: bool = True) -> None:
    """Run steps one after the other; `merge_first` false leaves the last merge of an era out. Raises what a step raises."""
    from penstock.flow.load import bootstrap
    from penstock.flow.merge import run as merge

    for step in steps:
        match step:
            case SourceStep():
                step.run(ctx)
            case CopyStep():
                bootstrap.copy(ctx, submit)
            case MergeStep() if merge_first or not step.last:
                merge.merge(ctx, submit, last=step.last)

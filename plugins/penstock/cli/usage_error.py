"""A verb whose statuses say what it found: a wrong option must not end it with one of these."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperCommand

from penstock.cli.printing import say
from penstock.flow.trial.report import NOT_TRIED


class OwnUsageError(TyperCommand):
    """End with the status of what could not be tried where any other verb ends with that of a wrong use."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the command line; raises Exit."""
        try:
            return super().parse_args(ctx, args)
        except typer.TyperException as error:
            say(f"{ctx.get_usage()}\n{error}")
            raise typer.Exit(NOT_TRIED) from None

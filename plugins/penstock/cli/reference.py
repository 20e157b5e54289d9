"""The part of docs/commands.md that follows from the code: `python -m penstock.cli.reference` prints it."""

from collections.abc import Iterator
from typing import Any

import typer
from typer.core import TyperOption

from penstock.cli.app import app
from penstock.cli.options import MEANINGS, PLAN_MIGRATION


def markdown() -> str:
    """Return exit statuses, and every verb with its usage and options."""
    return "\n".join([*_statuses(), *_verbs()]) + "\n"


def _statuses() -> Iterator[str]:
    yield "## Exit statuses\n"
    yield "| status | name | means |\n|---|---|---|"
    for status, meaning in MEANINGS.items():
        yield f"| {int(status)} | {status.name.lower()} | {meaning} |"
    yield "\nWith `--all` it is the most urgent one of all pipelines. `penstock plan-migration` has statuses of its own, for CI:\n"
    yield "| status | means |\n|---|---|"
    for number, meaning in PLAN_MIGRATION.items():
        yield f"| {number} | {meaning} |"


def _verbs() -> Iterator[str]:
    yield "\n## Usage and options"
    group: Any = typer.main.get_command(app)
    with group.make_context("penstock", [], resilient_parsing=True) as above:
        for name, command in group.commands.items():
            with command.make_context(name, [], parent=above, resilient_parsing=True) as ctx:
                usage = " ".join(command.get_usage(ctx).removeprefix("Usage: ").split())
                yield f"\n### {name}\n\n```text\n{usage}\n```\n\n{command.help}\n\n{command.epilog.replace('Example: ', 'Example: `')}`.\n"
                rows = [_row(each) for each in command.params if isinstance(each, TyperOption) and not each.hidden]
                if rows:
                    yield "| option | meaning |\n|---|---|"
                    yield from rows


def _row(option: Any) -> str:
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    default = f" Default: `{option.default}`." if isinstance(option.default, str) else ""
    if option.secondary_opts:
        default = f" Default: `{(option.opts if option.default else option.secondary_opts)[0]}`."
    required = " Required." if option.required else ""
    return f"| {names} | {option.help}{default}{required} |"


if __name__ == "__main__":
    typer.echo(markdown(), nl=False)

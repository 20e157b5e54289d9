"""One example of every verb, for the end of its `--help` and the page of commands."""

from __future__ import annotations

from typing import Any

import typer

EXAMPLES = {
    "init": "penstock init shop --connection shop_source --include 'sales.*'",
    "validate": "penstock validate",
    "check": "penstock check shop",
    "start": "penstock start shop",
    "plan-migration": "penstock plan-migration shop migrations/0042_prices.sql",
    "ddl-trigger": "penstock ddl-trigger shop | psql -U postgres shop",
    "package": "penstock package /opt/penstock/penstock.zip",
    "list": "penstock list",
    "status": "penstock status shop",
    "health": "penstock health --all",
    "verify": "penstock verify shop --table sales.orders",
    "runbook": "penstock runbook slot-lost shop",
    "bootstrap": "penstock bootstrap shop",
    "capture": "penstock capture shop",
    "merge": "penstock merge shop --force",
    "changelog": "penstock changelog shop --from 2026-11-21 --to 2026-11-22",
    "maintain": "penstock maintain shop --dry-run",
    "resume": "penstock resume shop --table sales.orders",
    "resync": "penstock resync shop --table sales.orders --no-dry-run",
    "replay": "penstock replay shop --table sales.orders --shadow before",
    "abandon": "penstock abandon shop --table sales.orders --no-dry-run",
    "recover": "penstock recover shop",
    "skip-transaction": "penstock skip-transaction shop",
    "teardown": "penstock teardown shop",
}


def add(app: typer.Typer, verb: Any, panel: str, **more: Any) -> None:
    """Give the command line a verb, with its example at the end of its help."""
    name = verb.__name__.removesuffix("_").replace("_", "-")
    app.command(name, rich_help_panel=panel, epilog=f"Example: {EXAMPLES[name]}", **more)(verb)

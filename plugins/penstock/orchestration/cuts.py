"""What follows a published cut in Airflow: numbers for its metrics, events of the tables that moved, and lineage."""

from __future__ import annotations

from typing import Any

from penstock.flow.context import Context
from penstock.ledger.records import CutRecord
from penstock.orchestration import lineage
from penstock.orchestration.notifications import send_cut
from penstock.orchestration.table_assets import emit


def tell(ctx: Context, context: Any, cut: CutRecord) -> None:
    """Tell Airflow of a cut that the running task has published."""
    send_cut(ctx, cut)
    emit(ctx, context["outlet_events"], cut)
    lineage.published(ctx, context["ti"], cut)

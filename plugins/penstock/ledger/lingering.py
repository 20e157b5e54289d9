"""The Spark application that a merge keeps, for whoever looks at the pipeline; nothing depends on it."""

from __future__ import annotations

from datetime import datetime

from penstock.ledger.session import Part


class Lingering(Part):
    """Note that an application is kept."""

    def keep(self, name: str, *, until: datetime, cuts: int) -> None:
        """Note that the application of a pipeline's merge is kept, and how many cuts it has made; note it time and again."""
        with self.transaction() as transaction:
            transaction.change("lingering/keep", name=name, until=until, cuts=cuts)

    def forget(self, name: str) -> None:
        """Note that no application is kept."""
        with self.transaction() as transaction:
            transaction.change("lingering/forget", name=name)

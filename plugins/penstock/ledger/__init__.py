"""The ledger: the control schema in PostgreSQL. It is the truth about capture; the lake is the truth about merge."""

from penstock.ledger.advisory_lock import new_attempt
from penstock.ledger.ledger import Ledger

__all__ = ["Ledger", "new_attempt"]

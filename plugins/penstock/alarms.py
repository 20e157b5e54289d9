"""The catalogue of alarms: what slot health reports to people, by name.

An alarm concerns one subject (a slot, a session, a setting) and has a level; it opens once and closes once.
`docs/runbooks/<slug>.md` says what to do. An alarm that stands for an error has the error's name and page.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["warn", "critical"]
LEVELS: tuple[Level, ...] = ("warn", "critical")


@dataclass(frozen=True, slots=True)
class Alarm:
    """Describe one kind of alarm: its highest level, its meaning, and how fast it gets worse."""

    level: Level
    meaning: str
    worsens: str

    @staticmethod
    def runbook(slug: str) -> str:
        """Name the page for the person on call, relative to the project."""
        return f"docs/runbooks/{slug}.md"


def _alarms() -> dict[str, Alarm]:
    return {
        # the pipeline's own slot
        "slot-retained": Alarm(
            "critical", "The slot keeps more WAL on the source's disk than the limit.", "as fast as the source writes"
        ),
        "slot-unread": Alarm(
            "critical", "More WAL is waiting to be captured than the limit.", "as fast as the source writes"
        ),
        "slot-unreserved": Alarm(
            "critical", "The slot will be lost at the next checkpoint.", "minutes, until the next checkpoint"
        ),
        "slot-lost": Alarm("critical", "The slot was invalidated and can never be read again.", "it is final"),
        "slot-missing": Alarm("critical", "The server has no slot of the pipeline's name.", "it is final"),
        "slot-orphaned": Alarm(
            "critical",
            "The slot belongs to a pipeline that is torn down or has no table.",
            "as fast as the source writes",
        ),
        "slot-stalled": Alarm(
            "critical",
            "The slot's confirmed position has stood still over several schedules.",
            "as fast as the source writes",
        ),
        "slot-synced": Alarm(
            "critical", "The slot is a standby's copy of its primary's and cannot be read here.", "nothing is captured"
        ),
        "slot-idle-timeout": Alarm(
            "critical",
            "The server may invalidate the slot for idleness between two captures.",
            "one missed run can do it",
        ),
        "catalog-xmin-old": Alarm(
            "critical", "The slot holds back the vacuuming of the catalogs for too many transactions.", "days"
        ),
        "decoding-spills": Alarm(
            "warn", "Decoding writes most of what it reads to the source's disk.", "it only costs time"
        ),
        # capture
        "capture-paused": Alarm("critical", "The capture DAG is paused.", "as fast as the source writes"),
        "capture-failing": Alarm("critical", "The capture DAG fails.", "as fast as the source writes"),
        "capture-too-slow": Alarm(
            "critical",
            "The source writes WAL faster than capture reads it.",
            "ever faster: a longer queue reads slower",
        ),
        "pipeline-halted": Alarm(
            "critical", "The pipeline is halted; its slot, if it has one, keeps WAL.", "as fast as the source writes"
        ),
        "publication-narrow": Alarm(
            "critical",
            "The publication does not send every kind of change.",
            "with every change that it leaves out",
        ),
        # the server
        "slot-abandoned": Alarm(
            "critical", "A slot that is not the pipeline's is inactive and keeps WAL.", "as fast as the source writes"
        ),
        "slots-nearly-full": Alarm(
            "warn", "Few replication slots or WAL senders are free.", "it stops the next one who needs one"
        ),
        "transaction-open-long": Alarm(
            "warn",
            "A transaction that has written has been open for long.",
            "slowly: WAL stays, every capture reads more",
        ),
        "transaction-prepared-long": Alarm(
            "warn", "A prepared transaction waits for its end for long.", "slowly: WAL stays, every capture reads more"
        ),
        "standby-feedback-off": Alarm(
            "critical",
            "The source is a standby that lets its primary vacuum what the slot needs.",
            "any vacuum can do it",
        ),
        "source-unreachable": Alarm("critical", "The source could not be asked.", "unknown: the slot is not observed"),
        # what verifications found
        "verify-unreadable": Alarm(
            "critical", "A verification could not read a table in the source or in the lake.", "its rows are unproven"
        ),
        "verify-differs": Alarm(
            "critical",
            "A verification found a table in which source and lake differ.",
            "with every reader who trusts it",
        ),
        # what merges met
        "divergence-suspected": Alarm(
            "critical",
            "Changes met other rows in the lake than at the source: the table may have diverged.",
            "with every reader who trusts it",
        ),
        # errors that only a person fixes: reported by the task that met them
        "source-auth": Alarm(
            "critical", "The source refused the login or the role lacks a privilege.", "as fast as the source writes"
        ),
        "source-disk-full": Alarm("critical", "The source's disk is full.", "at once: without room the server stops"),
        "source-corrupt": Alarm(
            "critical",
            "The source found its own files damaged while it read or decoded.",
            "unknown: more may be damaged",
        ),
        "decoding-limit": Alarm(
            "critical", "The source's limits do not allow what a window or a row takes.", "as fast as the source writes"
        ),
        "target-clash": Alarm(
            "critical", "Two source tables would share one target table.", "as fast as the source writes"
        ),
        "comparison-differs": Alarm(
            "critical", "Source and lake differ at the compared position.", "with every reader who trusts the lake"
        ),
    }


ALARMS: dict[str, Alarm] = _alarms()

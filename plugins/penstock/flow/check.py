"""Check: ask the source whether it is ready for a pipeline, and say it so that a person can act on it."""

from __future__ import annotations

from penstock.errors import SourceError
from penstock.flow.context import Context
from penstock.source import preflight, session
from penstock.source.preflight import Finding

__all__ = ["Finding", "check", "failures", "require"]


def check(ctx: Context) -> list[Finding]:
    """Return every finding of the preflight, the good ones too; raises SourceError when the source cannot be asked."""
    with session.connect(ctx.source, what=f"{ctx.name}:check") as conn:
        return preflight.check(conn, ctx.pipeline)


def failures(findings: list[Finding]) -> list[Finding]:
    """Return the findings that forbid a bootstrap."""
    return [finding for finding in findings if finding.level == "error"]


def require(ctx: Context) -> list[Finding]:
    """Check, report every finding as progress, and raise SourceError("preflight-failed") if one forbids a bootstrap."""
    findings = check(ctx)
    for finding in findings:
        ctx.progress(line(finding))
    failed = failures(findings)
    if failed:
        slug = failed[0].slug if len(failed) == 1 else "preflight-failed"
        raise SourceError(slug, f"{len(failed)} findings forbid a bootstrap: " + "; ".join(map(line, failed)))
    return findings


def line(finding: Finding) -> str:
    """Return a finding as one line: how bad, what about, what came, what to do."""
    step = f" -> {finding.next_step}" if finding.next_step else ""
    return f"{finding.level.upper():5} {finding.subject}: {finding.message}{step}"

"""CPU seconds of a process and all its children, those that have ended included (Linux)."""

from __future__ import annotations

import os
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def seconds(pid: int) -> float:
    """Return user and system time of a process, of its ended children, and of its living descendants."""
    children: dict[int, list[int]] = {}
    times: dict[int, float] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it has just ended
                continue
            times[int(folder.name)] = sum(int(field) for field in fields[11:15]) / _TICKS
            children.setdefault(int(fields[1]), []).append(int(folder.name))
    waiting, total = [pid], 0.0
    while waiting:
        now = waiting.pop()
        total += times.get(now, 0.0)
        waiting += children.get(now, [])
    return total

"""CPU seconds of a process and all its children, those that have ended included (Linux), and what some work takes of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

import psutil


def seconds(pid: int) -> float:
    """Return user and system time of a process, of its ended children, and of its living descendants."""
    total = 0.0
    process = psutil.Process(pid)
    for each in (process, *process.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):  # it has just ended
            times = each.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
    return total


def spent(work: Callable[[], object], *pids: int) -> list[float]:
    """Do some work; return its wall seconds, and the CPU seconds of each of these processes meanwhile."""
    before, started = [seconds(pid) for pid in pids], time.perf_counter()
    work()
    wall = time.perf_counter() - started
    return [wall, *(seconds(pid) - first for pid, first in zip(pids, before, strict=True))]

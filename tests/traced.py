"""A plugin of pytest for `make mutants`: note which lines of some modules each test runs, or run the tests of a list, in its order.

With `MUTANTS_RECORD` it writes that file: of each test the lines, the seconds, and what it needs (nothing, a server, Spark). A
fixture that several tests share runs during the first of them, so that its lines count for each test that has it.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

Lines = set[tuple[str, int]]


class Recorder:
    """Note the lines below some folders, test by test."""

    def __init__(self, file: Path, folders: tuple[str, ...]) -> None:
        self.file, self.folders = file, folders
        self.now: Lines = set()
        self.shared: dict[int, Lines] = {}
        self.tests: dict[str, dict[str, Any]] = defaultdict(lambda: {"lines": set(), "seconds": 0.0, "needs": 0})
        threading.settrace(self._frame)
        sys.settrace(self._frame)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Note a test's lines, its fixtures' included."""
        self.now = set()
        result = yield
        fixtures = getattr(item, "_fixtureinfo").name2fixturedefs.values()  # noqa: B009  # of pytest's own
        test = self.tests[item.nodeid]
        test["lines"] = self.now.union(*(self.shared.get(id(each), set()) for defs in fixtures for each in defs))
        needs_spark = "spark" in getattr(item, "fixturenames", ())
        test["needs"] = 0 if item.get_closest_marker("unit") else 2 if needs_spark else 1
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Iterator[None]:
        """Keep the lines of a fixture."""
        outer, self.now = self.now, set()
        try:
            return (yield)
        finally:
            if fixturedef.scope != "function":
                self.shared[id(fixturedef)] = self.shared.get(id(fixturedef), set()) | self.now
            self.now |= outer

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep how long a test takes, without what its fixtures take."""
        if report.when == "call":
            self.tests[report.nodeid]["seconds"] = report.duration

    def pytest_sessionfinish(self) -> None:
        """Write what was noted."""
        sys.settrace(None)
        found = {name: test | {"lines": sorted(test["lines"])} for name, test in self.tests.items()}
        self.file.write_text(json.dumps(found))

    def _frame(self, frame: FrameType, event: str, argument: object) -> Any:
        return self._line if frame.f_code.co_filename.startswith(self.folders) else None

    def _line(self, frame: FrameType, event: str, argument: object) -> Any:
        self.now.add((frame.f_code.co_filename, frame.f_lineno))
        return self._line


class Chosen:
    """Run the tests of a list, in its order; then those that were unknown when it was made, as the library names some."""

    def __init__(self, names: list[str], known: list[str]) -> None:
        self.order = {name: number for number, name in enumerate(names)}
        self.left_out = set(known) - set(names)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Leave out all others."""
        wanted = [each for each in session.items if each.nodeid not in self.left_out]
        session.items = sorted(wanted, key=lambda each: self.order.get(each.nodeid, len(self.order)))


def pytest_configure(config: pytest.Config) -> None:
    """Take the place that the environment asks for."""
    if file := os.environ.get("MUTANTS_RECORD"):
        config.pluginmanager.register(Recorder(Path(file), tuple(os.environ["MUTANTS_FOLDERS"].split(":"))))
    if file := os.environ.get("MUTANTS_TESTS"):
        config.pluginmanager.register(Chosen(*json.loads(Path(file).read_text())))

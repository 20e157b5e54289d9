"""A plugin of pytest for `make mutants`: note which lines of some modules each test runs, and run the tests of a list, in its order.

With `MUTANTS_RECORD` it writes that file: of each test the lines, the seconds, and what it needs (nothing, a server, Spark), and
under no name the lines that imports run. A fixture that several tests share runs during the first of them, so that its lines count for
each test that has it. With `MUTANTS_TRIALS` it puts changes of functions to tests: each in a fork, whose functions get the changed code.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import sys
import threading
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

import pytest
from _pytest import main

Lines = set[tuple[str, int]]


class Recorder:
    """Note the lines below some folders, test by test."""

    def __init__(self, file: Path, folders: tuple[str, ...]) -> None:
        self.file, self.folders = file, folders
        self.now: Lines = set()
        self.shared: dict[int, Lines] = {}
        self.tests: dict[str, dict[str, Any]] = defaultdict(lambda: {"lines": set(), "seconds": 0.0, "needs": 0})
        self.tests[""]["lines"] = self.now
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
    """Run the tests of a list, in its order."""

    def __init__(self, names: list[str]) -> None:
        self.names = names

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Leave out all others."""
        items = {each.nodeid: each for each in session.items}
        session.items = [items[name] for name in self.names if name in items]


class Trials:
    """Put changes of functions to tests, and write down which were noticed."""

    def __init__(self, trials: list[dict[str, Any]], results: str) -> None:
        self.trials, self.results, self.failed = trials, Path(results), ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the first test that fails."""
        if report.failed:
            self.failed = self.failed or report.nodeid

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Try one change after another."""
        items = {each.nodeid: each for each in session.items}
        functions = defaultdict(list)
        for each in gc.get_objects():
            if isinstance(each, FunctionType):
                functions[each.__code__.co_filename].append(each)
        gc.freeze()
        for trial in self.trials:
            reader, writer = os.pipe()
            if (child := os.fork()) == 0:
                session.items = [items[name] for name in trial["tests"] if name in items]
                self._try(session, trial, functions[trial["path"]], writer)
            os.close(writer)
            with os.fdopen(reader) as file:
                failed = file.read()
            died = os.waitpid(child, 0)[1] != 0
            outcome = trial["outcome"] | ({"noticed": True, "by": failed or "it ended"} if failed or died else {})
            with self.results.open("a") as results:
                results.write(json.dumps(outcome) + "\n")
        return True

    def _try(self, session: pytest.Session, trial: dict[str, Any], functions: list[FunctionType], writer: int) -> None:
        """Run the tests with the changed functions, and end the process: what fails is written to the pipe."""
        try:
            changed = dict(_codes(compile(trial["changed"], trial["path"], "exec")))
            for each in functions:
                code = changed.get((each.__code__.co_qualname, each.__code__.co_firstlineno))
                if code is not None and code.co_freevars == each.__code__.co_freevars:
                    each.__code__ = code
            session.config.option.maxfail = 1
            with contextlib.suppress(BaseException):
                main.pytest_runtestloop(session)
            os.write(writer, self.failed.encode())
            with contextlib.suppress(BaseException):  # stop the servers
                session._setupstate.teardown_exact(None)
        finally:
            os._exit(0)


def _codes(module: CodeType) -> Iterator[tuple[tuple[str, int], CodeType]]:
    for each in module.co_consts:
        if isinstance(each, CodeType):
            yield (each.co_qualname, each.co_firstlineno), each
            yield from _codes(each)


def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Take the place that the environment asks for."""
    plugins = early_config.pluginmanager
    if file := os.environ.get("MUTANTS_RECORD"):
        plugins.register(Recorder(Path(file), tuple(os.environ["MUTANTS_FOLDERS"].split(":"))))
    if file := os.environ.get("MUTANTS_TESTS"):
        plugins.register(Chosen(json.loads(Path(file).read_text())))
    if file := os.environ.get("MUTANTS_TRIALS"):
        plugins.register(Trials(*json.loads(Path(file).read_text())))

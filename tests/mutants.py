"""Change the library at random, one operator, constant or `not` at a time, and count what its own tests notice: `make mutants`.

cosmic-ray makes the changes, in a copy of the project and from an environment of its own, as it needs packages that Airflow has in other
versions. Places are chosen by chance and evenly, then one change for each. The tests of each room run once with a tracer, which also
proves that they pass; a change is put to those alone that run its line, what needs no server and the fastest first, until one fails. A change
that survives is shown: either nothing could notice it, or a test is missing. A run that was stopped goes on when its seed is given again.
"""

import argparse
import ast
import difflib
import gc
import importlib
import importlib.util
import itertools
import json
import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import venv
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from _pytest.config import default_plugins

ROOT = Path(__file__).parents[1]
LIBRARY = "plugins/penstock"
COSMIC_RAY = "cosmic-ray==8.7.0"
SCHEMA_JOBS = [
    *(f"tests/scenarios/test_{name}.py" for name in ("schema_changes", "membership", "object_names", "ddl_trigger")),
    "tests/scenarios/test_stories.py",
    *(f"tests/scenarios/test_{name}_partitions.py" for name in ("gone", "attached", "kept", "told_rewrites_of")),
    *(f"tests/attack/test_{name}.py" for name in ("silent_ddl", "publication_changes", "insert_only_publication")),
    *(f"tests/attack/test_{name}.py" for name in ("tables_that_changed", "renamed_tables")),
]
LOAD_JOBS = [
    *(f"tests/scenarios/test_{name}.py" for name in ("resync", "column_fetch", "new_tables", "dry_runs", "main_job")),
    *("tests/scenarios/test_membership.py", "tests/scenarios/test_copy_says_why_again.py"),
    *(
        "tests/attack/test_copies_under_ddl.py",
        "tests/faults/test_copy_killed.py",
        "tests/faults/test_rebuild_killed.py",
    ),
]
ROOMS = {
    "values": ["tests/values", "tests/source/test_type_name.py"],
    "shapes": [
        *("tests/shapes", "tests/flow/schema"),
        *("tests/source/test_partition_bounds.py", "tests/source/test_object_names.py"),
    ],
    "engine": ["tests/engine", "tests/values/test_casts.py", "tests/source/test_rows_of_partitions.py"],
    "flow/schema": ["tests/shapes", "tests/flow/schema", *SCHEMA_JOBS],
    "flow/load": ["tests/flow/load", "tests/flow/merge", "tests/flow/test_status.py", *LOAD_JOBS],
}
"""The rooms whose code is changed, and their own tests. Where a server is the oracle, it answers here, too."""
SECONDS = 120
"""So long the tests of one change may take together by what was recorded, the fastest first; what only slower ones notice has survived."""
PATIENCE = 10
"""One test of a changed library may take this many times what it took before, and a minute: then it hangs, and the change was noticed."""

HEAVY = [
    *("hypothesis", "psycopg", "pyarrow.parquet", "pyarrow.compute", "duckdb", "pydantic", "sqlalchemy", "pyspark.sql"),
    *("cryptography.x509", "platformdirs"),
    *("xdist.plugin", "anyio.pytest_plugin", "anyio._backends._asyncio"),
    *(f"_pytest.{name}" for name in default_plugins),
]
"""What tests import, and no mutant changes: imported once. None of it starts a thread, which a fork would not have."""

MEANINGLESS = {
    "annotations, and the `|` of types": "nothing runs them, and an import that fails is noticed by any test",
    "slots=, frozen=, kw_only=, repr= of a class": "they cost memory or forbid what mypy forbids",
    "strict= of zip": "ruff wants it everywhere; it says what its author knows, for no input",
    "== for is, and is for ==": "whether equal things are one thing is an accident of the interpreter",
}
"""What is not changed, and why."""
CHANGED = re.compile(
    "core/(Replace(Binary|Comparison|Unary)Operator_.*|Replace(And|Or|True|False)With.*|AddNot|NumberReplacer)"
)
OF_A_CLASS = {"slots", "frozen", "kw_only", "repr"}
SAME = {"Eq_Is", "Is_Eq", "NotEq_IsNot", "IsNot_NotEq"}

AT_ONCE = 10
CHANGE = """
import json, pathlib, sys
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator
texts = [mutate_code(pathlib.Path(m).read_text(), get_operator(o)(), n) for m, o, n in json.load(sys.stdin)]
print(json.dumps(texts))
"""
"""What cosmic-ray's own Python does: read names of changes, write the changed modules."""

Span = tuple[tuple[int, int], tuple[int, int]]


@dataclass(frozen=True)
class Mutant:
    """Name a change as cosmic-ray does: the operator, and which of its places in the module."""

    room: str
    module: str
    operator: str
    occurrence: int
    row: int
    column: int

    @property
    def key(self) -> str:
        """Return a name that stays."""
        return f"{self.module}:{self.operator}:{self.occurrence}"


@dataclass(frozen=True)
class Outcome:
    """Say what became of one change, and by which test it was noticed."""

    key: str
    room: str
    module: str
    noticed: bool
    by: str
    diff: str


@dataclass(frozen=True)
class Workshop:
    """Hold the folder of a seed: the copy of the project, the recorded tests, the outcomes so far."""

    folder: Path
    cosmic_ray: Path

    @property
    def tree(self) -> Path:
        """Return the copy."""
        return self.folder / "tree"

    @property
    def results(self) -> Path:
        """Return the file of outcomes, one a line."""
        return self.folder / "results.jsonl"

    @property
    def changed(self) -> Path:
        """Return the file that names the module which is changed now, with the text of before."""
        return self.folder / "changed.json"

    def outcomes(self) -> dict[str, Outcome]:
        """Return what is known by now."""
        lines = self.results.read_text().splitlines() if self.results.exists() else []
        return {each.key: each for each in (Outcome(**json.loads(line)) for line in lines)}

    def pytest(self, tests: Sequence[str], *options: str, **variables: str) -> tuple[int, str]:
        """Run tests of the copy, one after another, in a fork of this process, which has imported what takes long; return status and output."""
        said = self.folder / "pytest.log"
        child = os.fork()
        if child == 0:
            _become_pytest(self.tree, said, variables | {"NUMBA_CACHE_DIR": f"{self.folder.parent / 'numba'}"})
            os._exit(pytest.main(["-q", "-n", "0", "-p", "no:cacheprovider", "-p", "tests.traced", *options, *tests]))
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), said.read_text(errors="replace")


def main() -> int:
    """Change what the command line asks for; print a table and the survivors."""
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument(
        "--rooms", nargs="*", default=list(ROOMS), choices=ROOMS, metavar="room", help="those to change"
    )
    parser.add_argument("--modules", nargs="*", default=(), metavar="name", help="only modules of these names")
    parser.add_argument("--count", type=int, default=200, help="so many changes")
    parser.add_argument("--seed", type=int, default=0, help="go on with that run, or begin it")
    given = parser.parse_args()
    folder = ROOT / ".local" / "mutants"
    shop = Workshop(folder / f"seed-{given.seed}", _installed(folder / "venv"))
    if not shop.tree.exists():
        _copy(shop.tree)
    if shop.changed.exists():  # a run was killed meanwhile
        _write(shop, *json.loads(shop.changed.read_text()))
    places = [each for room in sorted(given.rooms) for each in _places(shop, room)]
    recorded = {room: _recorded(shop, room) for room in given.rooms}
    for name in HEAVY:
        importlib.import_module(name)
    gc.freeze()
    known = shop.outcomes()
    chosen = _chosen(places, given.modules, random.Random(given.seed))
    mutants = list(itertools.islice(_changes(shop, chosen, known.keys()), given.count))
    trials = [_trial(shop, mutant, text, recorded[mutant.room]) for mutant, text in mutants if mutant.key not in known]
    for room in given.rooms:
        _judge_in_place(shop, [each for each in trials if each.outcome.room == room and not each.once])
    for number, trial in enumerate(each for each in trials if each.once):
        _judge(shop, trial)
        print(f"imported again: {number + 1}", flush=True)  # noqa: T201
    known = shop.outcomes()
    outcomes = [known[mutant.key] for mutant, _ in mutants]
    report(outcomes)
    return 0


def report(outcomes: Sequence[Outcome]) -> None:
    """Print the survivors, then the changes of each module with what was noticed."""
    for each in outcomes:
        if not each.noticed:
            print(f"\n{each.module} survived {each.by}:\n{each.diff}")  # noqa: T201
    print("\nNot changed: " + "; ".join(f"{what} ({why})" for what, why in MEANINGLESS.items()))  # noqa: T201
    print(f"\n{'module':<44}{'changes':>9}{'noticed':>9}")  # noqa: T201
    noticed: Counter[str] = Counter()
    every: Counter[str] = Counter()
    for each in outcomes:
        for name in (f"{each.room}: {Path(each.module).stem}", f"{each.room}, all", "all"):
            every[name] += 1
            noticed[name] += each.noticed
    for name in sorted(every, key=lambda name: (name == "all", name)):
        print(f"{name:<44}{every[name]:>9}{noticed[name]:>9}{noticed[name] / every[name]:>7.0%}")  # noqa: T201


def _become_pytest(tree: Path, said: Path, variables: Mapping[str, str]) -> None:
    """Forget the project from which this process came; take the copy, and write into a file."""
    os.chdir(tree)
    ours = {str(ROOT), str(ROOT / "plugins")}
    sys.path[:] = [str(tree), str(tree / "plugins"), *(each for each in sys.path if each and each not in ours)]
    for name in [each for each in sys.modules if each.partition(".")[0] in ("tests", "penstock", "stack")]:
        del sys.modules[name]
    sys.dont_write_bytecode = False  # the copy's own, so that it is compiled once
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ.update(variables)
    os.environ["PYTHONPATH"] = f"{tree / 'plugins'}:{tree}"
    with said.open("w") as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)


def _installed(home: Path) -> Path:
    if not (home / "bin" / "cosmic-ray").exists():
        venv.create(home, clear=True, with_pip=True)
        subprocess.run([f"{home}/bin/pip", "install", "--quiet", COSMIC_RAY], check=True)
    return home / "bin"


def _copy(tree: Path) -> None:
    """Copy what git knows: tests of the copy do not see what is edited meanwhile, and a killed run leaves no change behind."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    made = tree.with_name("copying")
    shutil.rmtree(made, ignore_errors=True)
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).exists():
            (made / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, made / name, follow_symlinks=False)
    (made / ".venv").symlink_to(ROOT / ".venv")
    (made / ".local").mkdir()
    for each in (ROOT / ".local").iterdir():
        if each.name in ("jars", "jre", "downloads"):
            (made / ".local" / each.name).symlink_to(each)
    made.rename(tree)


def _places(shop: Workshop, room: str) -> Iterator[Mutant]:
    """Return every change that there can be in a room."""
    session = shop.folder / f"{room.replace('/', '-')}.sqlite"
    if not session.exists():
        files = sorted(str(each.relative_to(shop.tree)) for each in (shop.tree / LIBRARY / room).glob("*.py"))
        session.with_suffix(".toml").write_text(
            f'[cosmic-ray]\nmodule-path = {json.dumps(files)}\ntimeout = 1.0\nexcluded-modules = []\ntest-command = ""\n'
            '[cosmic-ray.distributor]\nname = "local"\n'
        )
        command = [f"{shop.cosmic_ray}/cosmic-ray", "init", f"{session.with_suffix('.toml')}", f"{session}"]
        subprocess.run(command, cwd=shop.tree, check=True)
    with sqlite3.connect(session) as db:
        found = db.execute(
            "select module_path, operator_name, occurrence, start_pos_row, start_pos_col from mutation_specs order by 1, 4, 5, 2, 3"
        ).fetchall()
    meaningless = {module: list(_meaningless(shop.tree / module)) for module in {each[0] for each in found}}
    for module, operator, occurrence, row, column in found:
        changed = CHANGED.fullmatch(operator) and not operator.endswith(tuple(SAME))
        if changed and not any(a <= (row, column) < b for a, b in meaningless[module]):
            yield Mutant(room, module, operator, occurrence, row, column)


def _meaningless(path: Path) -> Iterator[Span]:
    for node in ast.walk(ast.parse(path.read_text())):
        wanted = [getattr(node, name, None) for name in ("annotation", "returns")]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            named = {"zip": {"strict"}, "dataclass": OF_A_CLASS}.get(node.func.id, set())
            wanted += [each.value for each in node.keywords if each.arg in named]
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp) and isinstance(node.value.op, ast.BitOr):
            wanted += [node.value] * all(
                isinstance(each, ast.Name | ast.BinOp | ast.BitOr | ast.Load) for each in ast.walk(node.value)
            )
        for each in wanted:
            if isinstance(each, ast.expr):
                yield (each.lineno, each.col_offset), (each.end_lineno or 0, each.end_col_offset or 0)


def _chosen(places: Sequence[Mutant], modules: Sequence[str], chance: random.Random) -> Iterator[Mutant]:
    """Yield places by chance, each with one of its changes."""
    by_place: dict[tuple[str, int, int], list[Mutant]] = defaultdict(list)
    for each in places:
        if not modules or Path(each.module).stem in modules:
            by_place[each.module, each.row, each.column].append(each)
    order = sorted(by_place)
    chance.shuffle(order)
    yield from (chance.choice(by_place[place]) for place in order)


def _changes(shop: Workshop, chosen: Iterator[Mutant], known: Collection[str]) -> Iterator[tuple[Mutant, str]]:
    """Yield the chosen changes with the module's new text, but for those that are no Python, or the same; without it what is `known`."""
    while mutants := list(itertools.islice(chosen, AT_ONCE)):
        new = [each for each in mutants if each.key not in known]
        asked = json.dumps([(each.module, each.operator, each.occurrence) for each in new])
        command = [f"{shop.cosmic_ray}/python", "-c", CHANGE]
        done = subprocess.run(command, cwd=shop.tree, check=True, input=asked, stdout=subprocess.PIPE, text=True)
        texts = dict(zip((each.key for each in new), json.loads(done.stdout), strict=True))
        for each in mutants:
            if each.key in known or _differs(shop.tree / each.module, texts[each.key]):
                yield each, texts.get(each.key, "")


def _differs(path: Path, text: str) -> bool:
    try:
        return ast.dump(ast.parse(text)) != ast.dump(ast.parse(path.read_text()))
    except SyntaxError:
        return False


def _recorded(shop: Workshop, room: str) -> dict[str, Any]:
    """Return the lines of each of a room's tests; those that fail on the code as it is would notice everything."""
    recorded: dict[str, Any] = {"": {"lines": []}}
    for tests in ROOMS[room]:
        file = shop.folder / f"{tests.replace('/', '-')}.json"
        if not file.exists():
            folders = ":".join(f"{shop.tree / LIBRARY / each}/" for each in ROOMS)
            done = shop.pytest([tests], MUTANTS_RECORD=f"{file}.new", MUTANTS_FOLDERS=folders)
            if done[0] not in (0, pytest.ExitCode.NO_TESTS_COLLECTED):
                sys.exit(f"expected tests that pass on the code as it is; {tests} says:\n{done[1]}")
            file.with_name(f"{file.name}.new").rename(file)
        found = json.loads(file.read_text())
        recorded[""]["lines"] += found.pop("")["lines"]
        recorded |= found
    return recorded


@dataclass(frozen=True)
class Trial:
    """Hold a change with the tests that run its place, and the seconds that one may take; `once`: the import runs it, too."""

    outcome: Outcome
    path: Path
    changed: str
    tests: list[str]
    limit: float
    once: bool


def _trial(shop: Workshop, mutant: Mutant, changed: str, recorded: Mapping[str, Any]) -> Trial:
    """Choose the tests that run a place: what needs no server first, then the fastest.

    What runs once, when the module is imported, is for all tests of the room, those that run something else of the module first.
    """
    path = shop.tree / mutant.module
    text = path.read_text()
    begin, end, once = _statement(ast.parse(text), mutant.row)
    rows = {name: {row for file, row in test["lines"] if file == str(path)} for name, test in recorded.items()}
    imported = rows.pop("")
    runs = [name for name in rows if once or any(begin <= row <= end for row in rows[name])]
    runs.sort(key=lambda name: (not rows[name], recorded[name]["needs"], recorded[name]["seconds"]))
    spent = itertools.accumulate(recorded[name]["seconds"] for name in runs)
    chosen = [name for name, so_far in zip(runs, spent, strict=True) if so_far < SECONDS or name == runs[0]]
    limit = 60 + PATIENCE * max((recorded[name]["seconds"] for name in chosen), default=0.0)
    diff = "\n".join([*difflib.unified_diff(text.splitlines(), changed.splitlines(), lineterm="", n=2)][2:])
    outcome = Outcome(mutant.key, mutant.room, mutant.module, False, f"{len(chosen)} tests", diff)
    once = once or any(begin <= row <= end for row in imported)
    return Trial(outcome, path, changed, chosen, limit, once)


def _judge_in_place(shop: Workshop, trials: Sequence[Trial]) -> None:
    """Let one process that has imported all judge changes of functions, each in a fork that has the changed function instead."""
    files = sorted({name.partition("::")[0] for each in trials for name in each.tests})
    if not files:
        return
    wanted = [{**asdict(each), "path": str(each.path)} for each in trials]
    (work := shop.folder / "work.json").write_text(json.dumps([wanted, str(shop.results)]))
    limit = max(each.limit for each in trials)
    status, said = shop.pytest(files, f"--timeout={limit:.0f}", MUTANTS_TRIALS=f"{work}")
    if status:
        sys.exit(f"expected every change to be judged; pytest says:\n{said}")


def _judge(shop: Workshop, trial: Trial) -> None:
    """Change the copy, let the tests judge, and change it back."""
    module, text = trial.outcome.module, trial.path.read_text()
    (listed := shop.folder / "tests.json").write_text(json.dumps(trial.tests))
    files = sorted({name.partition("::")[0] for name in trial.tests})
    status, said = 0, ""
    shop.changed.write_text(json.dumps([module, text]))
    try:
        _write(shop, module, trial.changed)
        if files:
            status, said = shop.pytest(files, "-x", f"--timeout={trial.limit:.0f}", MUTANTS_TESTS=f"{listed}")
    finally:
        _write(shop, module, text)
        shop.changed.unlink()
    outcome = trial.outcome
    if status not in (0, pytest.ExitCode.NO_TESTS_COLLECTED):
        first = re.search(r"^(?:FAILED|ERROR|E  ) .*", said[said.rfind("short test summary") :], re.MULTILINE)
        outcome = replace(outcome, noticed=True, by=first.group() if first else said[-300:])
    with shop.results.open("a") as file:
        file.write(json.dumps(asdict(outcome)) + "\n")


def _write(shop: Workshop, module: str, text: str) -> None:
    """Write a module of the copy, and see that it is compiled again: a file of the same second and size counts as the same."""
    (path := shop.tree / module).write_text(text)
    Path(importlib.util.cache_from_source(str(path))).unlink(missing_ok=True)


def _statement(node: ast.AST, row: int, *, once: bool = True) -> tuple[int, int, bool]:
    """Return first and last row of the innermost statement there, and whether the import alone runs it."""
    begin, end = getattr(node, "lineno", 1), getattr(node, "end_lineno", None) or row
    inner = [each for each in ast.walk(node) if each is not node and isinstance(each, ast.stmt)]
    around = [each for each in inner if each.lineno <= row <= (each.end_lineno or 0)]
    if around:
        return _statement(around[0], row, once=once and not isinstance(node, ast.FunctionDef))
    if isinstance(node, ast.Match):
        return row, row, once
    return begin, max(begin, min(end, *(each.lineno - 1 for each in inner), end)), once


if __name__ == "__main__":
    sys.exit(main())

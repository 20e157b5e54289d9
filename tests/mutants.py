"""Change the library at random, one operator, constant or `not` at a time, and count what its own tests notice: `make mutants`.

cosmic-ray makes the changes, in a copy of the project and from an environment of its own, as it needs packages that Airflow has in other
versions. Places are chosen by chance and evenly, then one change for each; annotations are left out, as nothing runs them. A change
that survives is shown: either nothing could notice it, or a test is missing.
"""

import argparse
import ast
import json
import os
import random
import shlex
import shutil
import sqlite3
import subprocess
import sys
import venv
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
LIBRARY = "plugins/penstock"
COSMIC_RAY = "cosmic-ray==8.7.0"
SECONDS = 300
"""So long the tests of one change may take; one that makes them hang was noticed, too."""
ROOMS = {
    "values": ("not slow", ["tests/values"]),
    "shapes": ("unit and not slow", ["tests/shapes", "tests/flow/capture"]),
    "engine": ("not slow", ["tests/engine"]),
    "flow/schema": ("not slow", ["tests/shapes", "tests/flow/capture"]),
    "flow/load": ("not slow", ["tests/flow/merge", "tests/flow/test_status.py"]),
}
"""The rooms whose code is changed, and their own tests: the mark, the folders. Where a server is the oracle, it answers here, too."""


@dataclass(frozen=True)
class Outcome:
    """Say what became of one change: `killed`, `survived`, or `incompetent` for one that is no Python."""

    room: str
    module: str
    test_outcome: str
    diff: str


def main() -> int:
    """Change what the command line asks for; print a table and the survivors."""
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument(
        "--rooms", nargs="*", default=list(ROOMS), choices=ROOMS, metavar="room", help="those to change"
    )
    parser.add_argument("--modules", nargs="*", default=(), metavar="name", help="only modules of these names")
    parser.add_argument("--count", type=int, default=200, help="so many changes")
    parser.add_argument("--seed", type=int, default=0, help="choose the same changes again")
    given = parser.parse_args()
    folder = ROOT / ".local" / "mutants"
    cosmic_ray, tree = _installed(folder / "venv"), _copied(folder / "tree")
    sessions = {room: _session(cosmic_ray, tree, folder, room, given.modules) for room in given.rooms}
    _choose(sessions, given.count, random.Random(given.seed))
    outcomes = []
    for room, session in sessions.items():
        _run([cosmic_ray, "exec", f"{session.with_suffix('.toml')}", f"{session}"], tree)
        outcomes += list(_outcomes(room, session))
    report(outcomes)
    return 0


def report(outcomes: Sequence[Outcome]) -> None:
    """Print the survivors, then the changes of each module with what was noticed."""
    for each in outcomes:
        if each.test_outcome == "SURVIVED":
            lines = [
                line
                for line in each.diff.splitlines()
                if line.startswith(("@@", "-", "+")) and line[:3] not in ("---", "+++")
            ]
            print(f"\n{each.module} survived:", *lines, sep="\n  ")  # noqa: T201
    print(f"\n{'module':<44}{'changes':>9}{'noticed':>9}")  # noqa: T201
    noticed: Counter[str] = Counter()
    every: Counter[str] = Counter()
    for each in outcomes:
        for name in (f"{each.room}: {Path(each.module).stem}", f"{each.room}, all", "all"):
            every[name] += each.test_outcome != "INCOMPETENT"
            noticed[name] += each.test_outcome == "KILLED"
    for name in sorted(every, key=lambda name: (name == "all", name)):
        print(f"{name:<44}{every[name]:>9}{noticed[name]:>9}{noticed[name] / max(every[name], 1):>7.0%}")  # noqa: T201


def _installed(home: Path) -> str:
    program = home / "bin" / "cosmic-ray"
    if not program.exists():
        venv.create(home, clear=True, with_pip=True)
        _run([f"{home}/bin/pip", "install", "--quiet", COSMIC_RAY], ROOT)
    return str(program)


def _copied(tree: Path) -> Path:
    """Copy what git knows: tests of the copy do not see what is edited meanwhile, and a killed run leaves no change behind."""
    shutil.rmtree(tree, ignore_errors=True)
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).exists():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tree / name, follow_symlinks=False)
    (tree / ".venv").symlink_to(ROOT / ".venv")
    return tree


def _session(cosmic_ray: str, tree: Path, folder: Path, room: str, modules: Sequence[str]) -> Path:
    """Find every change that there can be in a room."""
    files = sorted((tree / LIBRARY / room).glob("*.py"))
    chosen = [str(file.relative_to(tree)) for file in files if not modules or file.stem in modules]
    mark, tests = ROOMS[room]
    command = f"{shlex.quote(sys.executable)} -m pytest -x -q -n 0 -p no:cacheprovider -m '{mark}' {' '.join(tests)}"
    _run(shlex.split(command), tree)  # tests that fail on the code as it is would notice everything
    session = folder / f"{room.replace('/', '-')}.sqlite"
    session.unlink(missing_ok=True)
    session.with_suffix(".toml").write_text(
        "[cosmic-ray]\n"
        f"module-path = {json.dumps(chosen)}\ntimeout = {SECONDS}.0\nexcluded-modules = []\n"
        f'test-command = {json.dumps(command)}\n[cosmic-ray.distributor]\nname = "local"\n'
    )
    _run([cosmic_ray, "init", f"{session.with_suffix('.toml')}", f"{session}"], tree)
    return session


def _choose(sessions: dict[str, Path], count: int, chance: random.Random) -> None:
    """Leave so many changes, of all sessions together."""
    places: dict[tuple[str, str, int, int], list[str]] = defaultdict(list)
    annotated: dict[str, list[tuple[tuple[int, int], tuple[int, int]]]] = {}
    tree = ROOT / ".local" / "mutants" / "tree"
    for room, session in sessions.items():
        with sqlite3.connect(session) as db:
            found = db.execute(
                "select job_id, module_path, start_pos_row, start_pos_col from mutation_specs"
            ).fetchall()
        for job, module, row, column in sorted(found, key=lambda each: (*each[1:], each[0])):
            if module not in annotated:
                annotated[module] = list(_annotations(tree / module))
            if not any(start <= (row, column) < end for start, end in annotated[module]):
                places[room, module, row, column].append(job)
    kept = {chance.choice(places[place]) for place in chance.sample(sorted(places), min(count, len(places)))}
    for session in sessions.values():
        with sqlite3.connect(session) as db:
            jobs = [job for (job,) in db.execute("select job_id from work_items") if job not in kept]
            for table in ("mutation_specs", "work_items"):
                db.executemany(f"delete from {table} where job_id = ?", [(job,) for job in jobs])


def _annotations(path: Path) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    for node in ast.walk(ast.parse(path.read_text())):
        for name in ("annotation", "returns"):
            if isinstance(each := getattr(node, name, None), ast.expr):
                yield (each.lineno, each.col_offset), (each.end_lineno or 0, each.end_col_offset or 0)


def _outcomes(room: str, session: Path) -> Iterator[Outcome]:
    with sqlite3.connect(session) as db:
        yield from (
            Outcome(room, *row)
            for row in db.execute(
                "select module_path, test_outcome, diff from work_results join mutation_specs using (job_id) order by 1, 3"
            )
        )


def _run(command: Sequence[str], folder: Path) -> None:
    numba = {"NUMBA_CACHE_DIR": str(ROOT / ".local" / "mutants" / "numba")}
    paths = {"PYTHONPATH": f"{folder / 'plugins'}:{folder}", "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run(command, cwd=folder, check=True, env=os.environ | numba | paths)


if __name__ == "__main__":
    sys.exit(main())

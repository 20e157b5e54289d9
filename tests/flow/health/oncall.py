"""A person on call who does what a runbook's page says, with nothing but a shell and psql.

Commands and SQL come from the page itself: fenced blocks, and what stands in backticks. What a page does not say
cannot be done.
"""

import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from penstock.cli.options import Status
from stack.paths import Project
from stack.servers.binaries import Binaries
from stack.servers.postgres import Database
from tests.pipeline_env import PipelineEnv

ROOT = Project.here().root


@dataclass(frozen=True)
class Step:
    """One thing to type: a line of shell, or SQL for psql at a place."""

    text: str
    place: str | None = None


@dataclass(frozen=True)
class Page:
    """One runbook."""

    slug: str

    def section(self, title: str) -> str:
        """Return the text of one section."""
        markdown = (ROOT / "docs" / "runbooks" / f"{self.slug}.md").read_text(encoding="utf-8")
        _, _, rest = markdown.partition(f"\n## {title}\n")
        return re.split(r"^## ", rest, maxsplit=1, flags=re.MULTILINE)[0]

    def steps(self, section: str) -> Iterator[Step]:
        """Yield what a section says is to be typed, the fenced blocks first."""
        body = self.section(section)
        for language, block in re.findall(r"^```(\w+)\n(.*?)^```$", body, flags=re.MULTILINE | re.DOTALL):
            if language == "sql":
                place, _, statements = block.partition("\n")
                yield Step(statements, place.removeprefix("-- "))
            elif language != "text":  # a template, or what is shown
                yield from (Step(line) for line in block.splitlines())
        prose = re.sub(r"^```.*?^```$", "", body, flags=re.MULTILINE | re.DOTALL)
        for words in re.findall(r"`([^`]+)`", prose):
            text = " ".join(words.split())
            if text.startswith(("penstock ", "airflow ")):
                yield Step(text)
            elif re.match(r"(select|alter|rollback|commit) ", text):
                yield Step(text, "on the source")


@dataclass
class OnCall:
    """The person, at the machine of a pipeline; `more` fills what a page leaves open, such as `<gid>` and `:pid`."""

    env: PipelineEnv
    home: Path
    programs: Binaries
    variables: Mapping[str, str] = field(default_factory=dict)
    """What the shell has besides."""

    def confirm(self, slug: str, **more: str) -> str:
        """Do all of the section Confirm; return what was shown."""
        steps = list(Page(slug).steps("Confirm"))
        assert steps, f"{slug} does not say how to confirm it"
        return "\n".join(self.type(step, more) for step in steps)

    def do(self, slug: str, fragment: str, *options: str, **more: str) -> str:
        """Do the step of What to do that has this fragment, with options that it names; return what was shown."""
        page = Page(slug)
        found = [step for step in page.steps("What to do") if fragment in step.text]
        assert found, f"{slug} does not say {fragment!r}"
        assert all(option in page.section("What to do") for option in options)
        return self.type(Step(" ".join([found[0].text, *options]), found[0].place), more)

    def type(self, step: Step, more: Mapping[str, str]) -> str:
        """Type one step; return what it showed."""
        known = {"pipeline": self.env.name, "port": str(self.env.source.server.port), "host": "127.0.0.1", **more}
        text = re.sub(r"<(\w+)>", lambda found: known[found[1]], step.text)
        if step.place is None:
            return self._run(["bash", "-c", text], self.shell())
        database = self.env.source if step.place == "on the source" else self.env.ledger
        return self.psql(database, text, more)

    def psql(self, database: Database, statements: str, more: Mapping[str, str]) -> str:
        """Put statements to psql, with the variables that the runbooks name."""
        pipeline = self.env.ctx.pipeline
        variables = {"slot": pipeline.slot, "publication": pipeline.publication, "pipeline": self.env.name, **more}
        place = {"PGHOST": "127.0.0.1", "PGPORT": str(database.server.port), "PGUSER": "postgres"}
        place |= {"PGPASSWORD": database.server.password, "PGDATABASE": database.name}
        sets = [word for name, value in variables.items() for word in ("-v", f"{name}={value}")]
        command = [str(self.programs.program("psql")), "-X", "-v", "ON_ERROR_STOP=1", *sets]
        return self._run(command, os.environ | place, statements)

    def shell(self) -> dict[str, str]:
        """Return the environment of the person's shell: the pipeline's file, as it is now, and its connections."""
        self.env.file(self.home)
        path = os.pathsep.join([str(self.programs.folder), str(ROOT / "bin"), os.environ["PATH"]])
        ours = {"PENSTOCK_PIPELINES": str(self.home), "PATH": path, "COLUMNS": "400"}
        return {**os.environ, **self.env.connections(), **self.variables, **ours}

    @staticmethod
    def _run(command: list[str], environment: Mapping[str, str], typed: str | None = None) -> str:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, input=typed, capture_output=True, text=True, check=False
        )
        shown = done.stdout + done.stderr
        looked = (Status.DONE, Status.FOUND, *([Status.DECIDE] if command[-1].startswith("penstock status") else []))
        assert done.returncode in looked, f"{command}\n{typed or ''}\n{shown}"
        return shown

"""The documents say what the code does: every key, verb, target, error and DAG has its words, and every word leads on.

The SQL of the documents is put to real servers, so that every statement which a person types at 3 a.m. has worked before.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
import typer
import yaml
from pydantic import BaseModel

from penstock.cli import reference
from penstock.cli.app import app
from penstock.conditions import CONDITIONS, WRONG_CALLS, WRONG_CALLS_PAGE, runbook, runbook_text
from penstock.config.connections import Connection
from penstock.config.model import Pipeline, load_pipeline
from penstock.ledger import Ledger
from penstock.shapes import rules
from stack.airflow.airflow_server import POOLS
from stack.paths import Project
from stack.servers import lake_catalog
from stack.servers.binaries import Binaries
from stack.servers.postgres import Database, Server

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Project.here().root
DOCS = ROOT / "docs"
LIBRARY = ROOT / "plugins" / "penstock"
RUNBOOKS = DOCS / "runbooks"
DOCUMENTS = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *LIBRARY.rglob("*.md")])
SAMPLE = ROOT / "include" / "pipelines" / "example.yaml.sample"

RUNBOOK_HEADINGS = [
    "Meaning",
    "How bad, how fast",
    "What Penstock does by itself",
    "Confirm",
    "What to do",
    "False positives",
    "Prevent",
]
DECISION_HEADINGS = ["Context", "Decision", "Consequences", "Rejected"]
PLACES = ("-- on the source", "-- on the control database", "-- in Spark SQL")
PUBLIC_HOSTS = {
    "docs.aws.amazon.com",
    "www.apache.org",
    "www.postgresql.org",
    "iceberg.apache.org",
    "spark.apache.org",
    "airflow.apache.org",
}
PUBLIC_FOLDERS = ("/opt/penstock", "/path/to/", "/var/lib/postgresql")
ADDRESSES_IN_AIRFLOW = ("/auth/token", "/cdc/")


def text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def headings(markdown: str, level: int) -> list[str]:
    outside = re.sub(r"^ *```.*?^ *```", "", markdown, flags=re.MULTILINE | re.DOTALL)
    return re.findall(rf"^#{{{level}}} (.+)$", outside, re.MULTILINE)


def blocks(markdown: str, language: str) -> list[str]:
    found = re.findall(rf"^ *```{language}\n(.*?)^ *```", markdown, re.MULTILINE | re.DOTALL)
    return [dedent(block) for block in found]


# --- configuration ---------------------------------------------------------------------------------------------------


def config_keys(model: type[BaseModel] = Pipeline, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every key of the pipeline file, dotted, with its default (None where it must be given or is derived)."""
    for name, field in model.model_fields.items():
        key = f"{prefix}{field.alias or name}"
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from config_keys(field.annotation, f"{key}.")
        else:
            yield key, None if field.is_required() else field.default


def shown(default: object) -> set[str]:
    """Return the ways in which the reference may show a default."""
    minutes = {minutes * 60: f"{minutes}m" for minutes in (2, 5, 10, 15, 30)}
    hours = {hours * 3600: f"{hours}h" for hours in (1, 6)}
    spans = {**minutes, **hours, **{days * 86400: f"{days}d" for days in (1, 3, 7, 30, 90)}}
    if isinstance(default, bool):
        return {str(default).lower()}
    if isinstance(default, int):
        return {str(default), spans.get(default, ""), f"{default >> 20}MiB", f"{default >> 30}GiB"}
    return {"{}" if default == {} else str(default)}


def test_every_config_key_is_documented_with_its_default(subtests: pytest.Subtests) -> None:
    for key, default in config_keys():
        with subtests.test(key):
            row = re.search(
                rf"^\| `{re.escape(key)}` \| (.+?) \| (.+?) \| (.+) \|$", text(DOCS / "configuration.md"), re.MULTILINE
            )

            assert row is not None, f"docs/configuration.md needs a row for `{key}`"
            if default is not None:
                assert row[2].strip("`") in shown(default)


def test_no_config_key_is_documented_that_does_not_exist() -> None:
    documented = re.findall(r"^\| `([a-z_.]+)` \|.+\|.+\|.+\|$", text(DOCS / "configuration.md"), re.MULTILINE)

    assert sorted(documented) == sorted(key for key, _ in config_keys())


def test_the_sample_has_every_key_at_its_default(tmp_path: Path) -> None:
    (tmp_path / "least.yaml").write_text(yaml.safe_dump({"name": "example", "tables": {"include": ["sales.*"]}}))
    loaded, least = (load_pipeline(path, {"PENSTOCK_HOME": "/srv"}) for path in (SAMPLE, tmp_path / "least.yaml"))

    def given(model: BaseModel, prefix: str = "") -> Iterator[str]:
        for name in model.model_fields_set:
            key = f"{prefix}{type(model).model_fields[name].alias or name}"
            value = getattr(model, name)
            yield from given(value, f"{key}.") if isinstance(value, BaseModel) else (key,)

    assert sorted(given(loaded)) == sorted(key for key, _ in config_keys())
    assert (loaded.slot, loaded.publication, loaded.namespace) == (least.slot, least.publication, least.namespace)
    derived = {"source": {"slot", "publication"}, "lake": {"namespace"}}
    assert loaded.model_dump(exclude=derived) == least.model_dump(exclude=derived)


def yaml_blocks() -> list[Any]:
    """Return the pipeline files, and parts of such, that documents show, each as a test case."""
    found = ((document, block) for document in DOCUMENTS for block in blocks(text(document), "yaml"))
    return [pytest.param(block, id=f"{named(document)}:{number}") for number, (document, block) in enumerate(found)]


@pytest.mark.parametrize("block", yaml_blocks())
def test_every_pipeline_file_in_a_document_is_one(block: str, tmp_path: Path) -> None:
    least = "" if re.search("^name:", block, re.MULTILINE) else 'name: p\ntables: {include: ["s.*"]}\n'
    (tmp_path / "shown.yaml").write_text(least + block)

    assert load_pipeline(tmp_path / "shown.yaml", {"PENSTOCK_HOME": str(tmp_path)}).name


def environment_variables() -> set[str]:
    """Return the variables of ours that the code names, those that Penstock itself hands to Spark excepted."""
    sources = [*ROOT.glob("plugins/**/*.py"), *ROOT.glob("stack/**/*.py"), *ROOT.glob("demo/*.py"), *ROOT.glob("bin/*")]
    found = set(re.findall(r"\bPENSTOCK_[A-Z]+(?:_[A-Z]+)*\b", "\n".join(map(text, sources))))
    return {name for name in found if not re.match(r"PENSTOCK_(SOURCE|CATALOG|LEDGER|LANDING)_?", name)}


def test_every_environment_variable_is_documented() -> None:
    documented = set(re.findall(r"^\| `(PENSTOCK_\w+)` \|", text(DOCS / "configuration.md"), re.MULTILINE))

    assert documented == environment_variables()


# --- commands --------------------------------------------------------------------------------------------------------


def verbs() -> dict[str, set[str]]:
    """Return the command line's verbs with their options."""
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    return {
        name: {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
        for name, command in commands.items()
    }


COMMAND = re.compile(r"(?:`|^ *)penstock ([a-z][a-z-]*)([^\n`]*)", re.MULTILINE)


def make_targets() -> dict[str, str]:
    return dict(re.findall(r"^([a-z-]+):.*?## (.+)$", text(ROOT / "Makefile"), re.MULTILINE))


def test_every_verb_of_the_command_line_is_documented_with_its_options() -> None:
    page = text(DOCS / "commands.md")
    for verb, options in verbs().items():
        row = re.search(rf"^\| `penstock {verb}[ `].*\|$", page, re.MULTILINE)

        assert row is not None, f"docs/commands.md needs a row for `penstock {verb}`"
        wanted = {option for option in options if option.startswith("--") and not option.startswith("--no-")}
        assert wanted <= set(re.findall(r"--[a-z-]+", row[0].replace("--no-", "--"))), verb


def test_the_reference_of_commands_is_what_the_command_line_says_of_itself() -> None:
    page = text(DOCS / "commands.md")

    assert page.endswith(reference.markdown()), (
        "run: python -m penstock.cli.reference, and put it at the end of the page"
    )


def test_the_table_of_schema_changes_is_that_of_the_rules() -> None:
    assert rules.markdown() + "\n\n" in text(DOCS / "schema-changes.md"), (
        'run: python -c "from penstock.shapes import rules; print(rules.markdown())", and put it in the place of the table'
    )


def test_every_runbook_that_repairs_by_a_verb_that_is_dry_says_how_it_is_not(subtests: pytest.Subtests) -> None:
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    dry = [name for name, each in commands.items() if any("--dry-run" in p.opts and p.default for p in each.params)]
    for slug in CONDITIONS:
        step = re.split(r"## What to do|\*\*What to do\*\*", runbook_text(ROOT, slug))[1].partition("\n## ")[0]
        with subtests.test(slug):
            if re.search(rf"penstock ({'|'.join(dry)}) <pipeline>", step):
                assert "--no-dry-run" in step


def test_every_make_target_is_documented() -> None:
    operations = text(DOCS / "operations.md")

    assert make_targets()
    assert [name for name in make_targets() if f"| `make {name}` |" not in operations] == []


def test_every_command_in_a_document_exists(subtests: pytest.Subtests) -> None:
    known, targets = verbs(), set(make_targets())
    for document in DOCUMENTS:
        with subtests.test(named(document)):
            for verb, rest in COMMAND.findall(text(document)):
                assert verb in known, f"penstock {verb}"
                assert set(re.findall(r"--[a-z-]+", rest)) <= known[verb], f"penstock {verb}{rest}"
            mentioned = re.findall(r"(?:`|^)make ([a-z-]+)", text(document), re.MULTILINE)
            assert set(mentioned) <= targets


# --- DAGs ------------------------------------------------------------------------------------------------------------


def test_every_dag_file_is_documented(subtests: pytest.Subtests) -> None:
    for dag_file in sorted(ROOT.glob("dags/*.py")):
        with subtests.test(named(dag_file)):
            operations = text(DOCS / "operations.md")

            assert ast.get_docstring(ast.parse(text(dag_file)))
            assert f"`<pipeline>.{dag_file.stem}`" in operations or f"`{named(dag_file)}`" in operations


def parameters(dag_file: Path) -> set[str]:
    """Return the names of a DAG's parameters."""
    given = (node for node in ast.walk(ast.parse(text(dag_file))) if isinstance(node, ast.keyword))
    tables = (node.value for node in given if node.arg == "params" and isinstance(node.value, ast.Dict))
    return {key.value for table in tables for key in table.keys if isinstance(key, ast.Constant)}


def test_every_parameter_of_a_dag_is_explained_on_the_dags_page() -> None:
    for dag_file in ROOT.glob("dags/*.py"):
        page = ast.get_docstring(ast.parse(text(dag_file))) or ""

        assert {name for name in parameters(dag_file) if f"`{name}`" not in page} == set(), named(dag_file)
    assert "dry_run" in parameters(ROOT / "dags" / "maintain.py")


def test_every_parameter_of_a_dag_is_read_by_its_tasks_or_an_operator() -> None:
    operators = "\n".join(map(text, (LIBRARY / "orchestration").glob("*.py")))
    for dag_file in ROOT.glob("dags/*.py"):
        read = set(re.findall(r'params(?:"])?(?:\[|\.get\()"(\w+)"', text(dag_file) + operators))

        assert parameters(dag_file) - read == set(), named(dag_file)


def test_every_pool_is_documented() -> None:
    operations = text(DOCS / "operations.md")

    assert [name for name in POOLS if f"| `{name}` |" not in operations] == []


# --- runbooks --------------------------------------------------------------------------------------------------------


def test_every_condition_has_a_runbook_and_every_runbook_a_condition() -> None:
    pages = {path.stem for path in RUNBOOKS.glob("*.md")} - {"README", WRONG_CALLS_PAGE}

    assert pages == CONDITIONS.keys() - WRONG_CALLS
    assert headings(text(RUNBOOKS / f"{WRONG_CALLS_PAGE}.md"), 2) == [
        slug for slug in CONDITIONS if slug in WRONG_CALLS
    ]


def test_every_runbook_has_the_fixed_headings_with_something_under_each(subtests: pytest.Subtests) -> None:
    for slug in CONDITIONS.keys() - WRONG_CALLS:
        with subtests.test(slug):
            markdown = text(RUNBOOKS / f"{slug}.md")

            assert headings(markdown, 1) == [slug]
            assert headings(markdown, 2) == RUNBOOK_HEADINGS
            for section in re.split(r"^## .+$", markdown, flags=re.MULTILINE)[1:]:
                assert len(section.split()) >= 2


def test_every_wrong_call_is_explained_says_how_to_confirm_it_and_what_to_do(subtests: pytest.Subtests) -> None:
    for slug in WRONG_CALLS:
        with subtests.test(slug):
            parts = re.split(r"^(# .+|\*\*.+\*\*)$", runbook_text(ROOT, slug), flags=re.MULTILINE)

            assert parts[1::2] == [f"# {slug}", "**Confirm**", "**What to do**"]
            assert all(len(part.split()) >= 2 for part in parts[2::2])


def index_row(slug: str) -> str:
    """Return the line of the index for one condition."""
    each, alarm = CONDITIONS[slug], CONDITIONS[slug].alarm
    effect = each.directive.value if each.directive else ""
    cells = [
        f"[{slug}]({runbook(slug).removeprefix('docs/runbooks/')})",
        each.meaning,
        effect,
        alarm.level if alarm else "",
        alarm.worsens if alarm else "",
    ]
    return f"| {' | '.join(cells)} |"


def test_the_index_of_runbooks_repeats_the_catalogue_of_conditions_row_by_row() -> None:
    found = re.findall(r"^\| \[.+\]\(.+\.md(?:#.+)?\) \|.+$", text(RUNBOOKS / "README.md"), re.MULTILINE)

    assert found == [index_row(slug) for slug in CONDITIONS]


def test_the_index_lists_the_runbooks_that_tests_act_out() -> None:
    folder = ROOT / "tests"
    files = (
        "flow/health/test_runbooks_acted_out.py",
        "flow/health/test_versions.py",
        "dags/test_runs.py",
        "scenarios/test_damage_acted_out.py",
    )
    acted_out = {slug for name in files for slug in re.findall(r'confirm\("([a-z-]+)"', text(folder / name))}
    recovered = text(folder / "scenarios" / "test_recovery_acted_out.py")
    acted_out |= set(re.findall(r'^    \("([a-z-]+)", "[a-z-]+", \w+\),$', recovered, flags=re.MULTILINE))
    listed = text(RUNBOOKS / "README.md").partition("## Acted out")[2]

    assert set(re.findall(r"\[([a-z-]+)\]\(", listed)) == acted_out
    assert len(acted_out) > 20


# --- decisions -------------------------------------------------------------------------------------------------------


def test_every_decision_is_numbered_indexed_and_gives_what_was_rejected(subtests: pytest.Subtests) -> None:
    for record in sorted(DOCS.glob("decisions/0*.md")):
        with subtests.test(named(record)):
            markdown = text(record)

            assert re.fullmatch(rf"{int(record.name[:4])}\. .+", headings(markdown, 1)[0])
            assert headings(markdown, 2) == DECISION_HEADINGS
            assert f"({record.name})" in text(DOCS / "decisions" / "README.md")


# --- links, hosts, paths ---------------------------------------------------------------------------------------------


def anchors(markdown: str) -> set[str]:
    found = (title for level in range(1, 5) for title in headings(markdown, level))
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in found}


def test_every_relative_link_leads_somewhere(subtests: pytest.Subtests) -> None:
    for document in DOCUMENTS:
        with subtests.test(named(document)):
            for link in re.findall(r"\]\(([^)\s]+)\)", text(document)):
                if "://" in link:
                    continue
                path, _, anchor = link.partition("#")
                target = (document.parent / path).resolve() if path else document
                assert target.exists(), link
                assert not anchor or anchor in anchors(text(target)), link


def test_the_picture_of_the_architecture_has_every_room_and_every_wing() -> None:
    picture = text(DOCS / "architecture.md").split("```")[1]
    rooms = {path.parent.name for path in LIBRARY.glob("*/__init__.py")}
    wings = {path.stem for path in (LIBRARY / "flow").iterdir() if path.stem[0] not in "._"}

    assert {name for name in rooms | wings if not re.search(rf"\b{name}\b", picture)} == set()


def test_every_file_of_the_table_of_changes_exists() -> None:
    table = text(ROOT / "CONTRIBUTING.md").partition("## Where a change goes")[2].partition("\n## ")[0]
    paths = {path for path in re.findall(r"`([\w./-]+)`", table) if "/" in path or path.endswith(".py")}

    assert len(paths) > 30
    assert {path for path in paths if not any((folder / path).exists() for folder in (ROOT, LIBRARY))} == set()


def test_every_document_can_be_reached_from_the_readme() -> None:
    reached, ahead = set[Path](), [ROOT / "README.md"]
    while ahead:
        document = ahead.pop()
        if document in reached:
            continue
        reached.add(document)
        links = re.findall(r"\]\(([^)\s#]+\.md)", text(document))
        ahead += [(document.parent / link).resolve() for link in links if "://" not in link]

    assert [named(document) for document in DOCUMENTS if document not in reached] == []


def test_no_document_names_a_path_or_a_host_of_a_private_machine(subtests: pytest.Subtests) -> None:
    for document in DOCUMENTS:
        with subtests.test(named(document)):
            markdown = text(document)
            paths = re.findall(r"(?<![\w.:/<>{}$*~@\])-])/[\w.-]+/[\w./-]*", markdown)
            hosts = re.findall(r"https?://([\w.-]+)", markdown)
            addresses = re.findall(r"\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b", markdown)

            assert [path for path in paths if not path.startswith(PUBLIC_FOLDERS + ADDRESSES_IN_AIRFLOW)] == []
            assert {host for host in hosts if not host.endswith("example.com")} <= PUBLIC_HOSTS | {
                "127.0.0.1",
                "localhost",
            }
            assert set(addresses) <= {"127.0.0.1", "0.0.0.0"}


# --- the SQL of the documents ----------------------------------------------------------------------------------------


def statements(place: str) -> list[tuple[str, str]]:
    """Return the SQL blocks of all documents for one place, each with its document and number."""
    found = []
    for document in DOCUMENTS:
        for number, block in enumerate(blocks(text(document), "sql"), start=1):
            first, _, body = block.partition("\n")
            if first.startswith(place):
                found.append((f"{named(document)}:{number}", body))
    return found


def test_every_sql_block_says_where_to_run_it(subtests: pytest.Subtests) -> None:
    for document in DOCUMENTS:
        with subtests.test(named(document)):
            for block in blocks(text(document), "sql"):
                assert block.startswith(PLACES), block


PSQL_VARIABLES = {
    "slot": "penstock_shop",
    "publication": "penstock_shop",
    "pipeline": "shop",
    "role": "penstock_capture",
    "table": "sales.order_line",
    "pid": "0",
    "position": "0/16B3748",
    "file": "16384",
}
SOURCE_OBJECTS = """
create role shop_owner;
create role penstock_capture login replication;
create role penstock_reader login;
create schema sales authorization shop_owner;
create table sales.customer (id bigint primary key);
create table sales."order" (id bigint primary key);
create table sales.order_line (id bigint primary key);
create table sales.audit (id bigint not null, natural_key text not null, relation regclass);
create unique index audit_natural_key on sales.audit (natural_key);
create table sales.price (natural_key text not null, valid_until date);
create unique index price_natural_key on sales.price (natural_key);
create function sales.immutable_unaccent(text) returns text language sql immutable as 'select lower($1)';
"""


@pytest.fixture(scope="module")
def documented_server(new_server: Any, request: pytest.FixtureRequest, version: str) -> Iterator[Server]:
    """A server of our own, because documents change settings of the server and make roles."""
    binaries = request.getfixturevalue(version)
    assert isinstance(binaries, Binaries)
    server = new_server(binaries)
    yield server
    server.stop()


@pytest.fixture(scope="module", params=["binaries15", "binaries16"])
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def shop(documented_server: Server) -> Iterator[Database]:
    with documented_server.temporary_database("shop") as database:
        with psycopg.connect(database.dsn(), autocommit=True) as connection:
            connection.execute(SOURCE_OBJECTS)
        yield database


@pytest.fixture(scope="module")
def control(documented_server: Server) -> Iterator[Database]:
    with documented_server.temporary_database("control") as database:
        lake_catalog.create_tables(database.dsn())
        server = database.server
        Ledger(Connection("c", "127.0.0.1", server.port, "postgres", server.password, database.name)).migrate()
        yield database


def try_out(database: Database, body: str) -> list[str]:
    """Carry statements out and undo them, a query is only planned, for it may do something; return those accepted."""
    accepted = []
    body = re.sub(r"^\\.*$|--.*$", "", body, flags=re.MULTILINE)
    body = re.sub(r"(?<!:):'(\w+)'", lambda match: f"'{PSQL_VARIABLES[match[1]]}'", body)
    body = re.sub(r"(?<![:\w']):(\w+)", lambda match: PSQL_VARIABLES[match[1]], body)
    with psycopg.connect(database.dsn(), autocommit=True) as connection:
        for statement in filter(str.strip, body.split(";")):
            words = statement.lower().split()
            accepted.append(words[0])
            if words[:2] == ["alter", "system"]:
                connection.execute(statement.encode())
                connection.execute(f"alter system reset {words[3]}".encode())
                continue
            with connection.transaction(force_rollback=True):
                if words[:2] == ["create", "role"]:  # ours has the name
                    connection.execute(f"alter role {words[2]} rename to another".encode())
                connection.execute(("explain " * (words[0] in ("select", "with")) + statement).encode())
    return accepted


def test_the_sources_sql_works(shop: Database, subtests: pytest.Subtests) -> None:
    for name, body in statements("-- on the source"):
        with subtests.test(name):
            assert try_out(shop, body), "the server has refused nothing, and there was something to refuse"


def test_the_control_databases_sql_works(control: Database, subtests: pytest.Subtests) -> None:
    for name, body in statements("-- on the control database"):
        with subtests.test(name):
            assert try_out(control, body), "the server has refused nothing, and there was something to refuse"


@pytest.mark.spark
def test_sparks_sql_parses(spark: "SparkSession", subtests: pytest.Subtests) -> None:
    for name, body in statements("-- in Spark SQL"):
        with subtests.test(name):
            parser = spark._jsparkSession.sessionState().sqlParser()
            for statement in filter(str.strip, re.sub(r"--.*$", "", body, flags=re.MULTILINE).split(";")):
                assert parser.parsePlan(statement) is not None

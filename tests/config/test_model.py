"""A pipeline file that is wrong is refused with file, line and the nearest valid key; nothing is guessed."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.config.files import clashes, find_pipeline, read_folder
from penstock.config.model import Pipeline, load_pipeline
from penstock.errors import ConfigError

LEAST = "name: shop\ntables:\n  include: [shop.*]\n"
HOME = {"PENSTOCK_HOME": "/srv/penstock"}

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(text: str, name: str = "shop.yaml") -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


def load(path: Path, **environment: str) -> Pipeline:
    return load_pipeline(path, HOME | environment)


def refusal(path: Path) -> str:
    with pytest.raises(ConfigError, match="config-invalid") as caught:
        load(path)
    return caught.value.message.replace(f"{path}:", "")


PLACED = 'name: {name}\ntables: {{include: ["*.*"]}}\nlanding: {{uri: /l}}\nlake: {{namespace: {namespace}}}\n'


def test_two_pipelines_with_one_namespace_or_slot_are_both_named_and_none_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(PLACED.format(name="a", namespace="shared"))
    (tmp_path / "b.yaml").write_text(PLACED.format(name="b", namespace="shared") + "source: {slot: penstock_a}\n")
    (tmp_path / "c.yaml").write_text(PLACED.format(name="c", namespace="own"))
    folder = read_folder(tmp_path, HOME)

    found = {name: [str(each.problems[0]) for each in clashes(one, folder)] for name, one in folder.pipelines.items()}

    assert found["a"] == [
        f"{tmp_path}/a.yaml:4: lake.namespace: expected a namespace of its own, got lake.shared, which b.yaml has as well; "
        "give one of them another lake.namespace",
        f"{tmp_path}/a.yaml:1: source.slot: expected a slot of its own, got penstock_a, which b.yaml has as well; give one of "
        "them another source.slot",
    ]
    assert [each.partition(": expected")[0] for each in found["b"]] == [
        f"{tmp_path}/b.yaml:4: lake.namespace",
        f"{tmp_path}/b.yaml:5: source.slot",
    ]
    assert found["c"] == []
    assert folder.problems == ()


def test_of_two_files_with_one_name_each_is_said_whichever_is_asked_for(tmp_path: Path) -> None:
    for file in ("shop", "copy"):
        (tmp_path / f"{file}.yaml").write_text(PLACED.format(name="shop", namespace="shop"))
    folder = read_folder(tmp_path, HOME)

    for path in (None, tmp_path / "copy.yaml", tmp_path / "shop.yaml"):
        (found,) = clashes(folder.pipelines["shop"], folder, path)
        assert str(found).startswith(
            f"[config-invalid] {tmp_path}/copy.yaml:1: name: expected another name, got shop twice"
        )


def test_the_least_file_gets_every_default(write: Write) -> None:
    pipeline = load(write(LEAST))

    assert (pipeline.slot, pipeline.publication, pipeline.namespace) == ("penstock_shop", "penstock_shop", "shop")
    assert pipeline.capture.max_wal_bytes == 256 << 20
    assert pipeline.landing.uri == "/srv/penstock/.local/landing"


def test_names_that_are_given_are_taken(write: Write) -> None:
    given = LEAST + "source: {slot: s1, publication: p1}\nlake: {namespace: n1}\n"
    pipeline = load(write(given))

    assert (pipeline.slot, pipeline.publication, pipeline.namespace) == ("s1", "p1", "n1")


@pytest.mark.parametrize(
    ("text", "size"), [("1", 1), ("10 B", 10), ("3KB", 3 << 10), ("256MiB", 256 << 20), ("2 gib", 2 << 30)]
)
def test_sizes_are_bytes_or_readable_texts(write: Write, text: str, size: int) -> None:
    assert load(write(LEAST + f"capture: {{max_wal_bytes: {text}}}\n")).capture.max_wal_bytes == size


@pytest.mark.parametrize(("text", "seconds"), [("7", 7), ("90s", 90), ("10m", 600), ("2 h", 7200), ("1d", 86400)])
def test_spans_are_seconds_or_readable_texts(write: Write, text: str, seconds: int) -> None:
    assert load(write(LEAST + f"capture: {{time_budget: {text}}}\n")).capture.time_budget == seconds


def test_every_problem_is_named_at_once(write: Write) -> None:
    said = refusal(write("tables: {include: []}\nsourc: {}\n"))

    assert "1: name: expected a value: this key has no default" in said
    assert "1: tables.include: expected one entry at least" in said
    assert "2: sourc: unknown key; did you mean 'source'?" in said


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "1: expected keys with values, such as name: shop, got nothing"),
        ("- a\n", "1: expected keys with values, such as name: shop, got a list"),
        ("name: [\n", "2: cannot be read as YAML: expected the node content"),
        (LEAST + "name: other\n", "4: name: expected every key once, got it again"),
        (
            LEAST + "capture:\n  schedule: null\n  schedule: '0 * * * *'\n",
            "6: capture.schedule: expected every key once, got it again",
        ),
    ],
)
def test_what_is_no_pipeline_file_is_refused(write: Write, text: str, message: str) -> None:
    assert refusal(write(text)).startswith(message)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    absent, latin = tmp_path / "absent.yaml", tmp_path / "latin.yaml"
    latin.write_bytes(b"name: caf\xe9\n")

    assert "expected a readable UTF-8 pipeline file" in refusal(absent)
    assert "invalid continuation byte" in refusal(latin)


# --- the environment -------------------------------------------------------------------------------


def test_variables_are_taken_from_the_environment_wherever_a_text_stands(write: Write) -> None:
    text = (
        LEAST
        + "landing:\n  uri: s3://${BUCKET}/x\n  options: {region: '${REGION}'}\ncapture:\n  time_budget: ${BUDGET}\n"
    )
    pipeline = load(write(text), BUCKET="b", REGION="eu", BUDGET="2m")

    assert (pipeline.landing.uri, pipeline.landing.options, pipeline.capture.time_budget) == (
        "s3://b/x",
        {"region": "eu"},
        120,
    )


def test_a_missing_variable_is_named(write: Write) -> None:
    said = refusal(write(LEAST + "landing: {uri: '${NOPE}/x'}\n"))

    assert said.startswith("4: landing.uri: the environment variable NOPE is not set; set it for Airflow")


def test_a_refused_value_that_came_from_a_variable_is_named_by_the_variables_name(write: Write) -> None:
    text = LEAST + "capture: {schedule: 'at ${WHEN}'}\nhealth: {disk: '${DISK}'}\nmerge: {schedule: 'often'}\n"
    with pytest.raises(ConfigError) as caught:
        load(write(text), WHEN="o'clock \\ secret", DISK="no size, a secret")

    assert "secret" not in caught.value.message
    assert "got 'at ${WHEN}'" in caught.value.message.replace('"', "'")
    assert "got 'often'" in caught.value.message


def test_the_process_environment_is_not_read_behind_the_callers_back(write: Write) -> None:
    name = next(iter(os.environ))
    with pytest.raises(ConfigError, match=name):
        load_pipeline(write(LEAST + f"landing: {{uri: '${{{name}}}'}}\n"), {})


# --- many files ------------------------------------------------------------------------------------


def test_pipelines_are_found_by_name(write: Write, tmp_path: Path) -> None:
    write(LEAST, "one.yaml")
    write(LEAST.replace("shop", "bank"), "two.yaml")
    write("not: read", "three.yaml.sample")

    found = read_folder(tmp_path, HOME)
    assert (list(found.pipelines), found.problems) == (["bank", "shop"], ())
    assert find_pipeline("shop", tmp_path, HOME) == found.pipelines["shop"]


# --- the target ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("template", "target"),
    [
        ("{namespace}.{schema}.{table}", ("shop", "Sales", "Order")),
        ("{namespace}.{schema}_{table}", ("shop", "Sales_Order")),
        ("bronze.raw-{table}", ("bronze", "raw-Order")),
        ("{table}", ("Order",)),
    ],
)
def test_the_target_follows_its_template(write: Write, template: str, target: tuple[str, ...]) -> None:
    assert load(write(LEAST + f"lake: {{target: '{template}'}}\n")).target("Sales", "Order") == target


def test_dots_in_source_names_do_not_become_levels_of_the_target(write: Write) -> None:
    assert load(write(LEAST)).target("a.b", "c.d.e") == ("shop", "a_b", "c_d_e")


def test_braces_in_source_names_are_only_text(write: Write) -> None:
    assert load(write(LEAST)).target("{table}", "{}") == ("shop", "{table}", "{}")


@pytest.mark.parametrize(
    "template",
    ["fixed", "{namespace}.{tabel}", "{table}}", "{table", "{}", "{table}.{schema:>9}", "{table!r}", "{table}..x", ""],
)
def test_a_template_that_names_no_table_or_is_malformed_is_refused(write: Write, template: str) -> None:
    assert "lake.target: expected names joined by dots" in refusal(write(LEAST + f"lake: {{target: '{template}'}}\n"))


def test_the_kinds_of_change_are_each_named_once_and_at_least_one(write: Write) -> None:
    given = "source: {publish: [truncate, insert, insert]}\n"
    assert load(write(LEAST)).source.publish == ["insert", "update", "delete", "truncate"]
    assert load(write(LEAST + given)).source.publish == ["insert", "truncate"]
    assert "source.publish" in refusal(write(LEAST + "source: {publish: []}\n"))
    assert "source.publish" in refusal(write(LEAST + "source: {publish: [inserts]}\n"))


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("{include: [shop.t], columns: [grid], type: text}", "tables.columns.0.type: expected string, got 'text'"),
        ("{include: [shop.t], columns: [grid]}", "tables.columns.0.type: expected a value: this key has no default"),
        ("{include: [shop.t], columns: [], type: string}", "tables.columns.0.columns: expected "),
        ("{columns: [grid], type: string}", "tables.columns.0.include: expected a value: this key has no default"),
        ("{include: [shop.t], column: [grid], type: string}", "unknown key; did you mean 'columns'?"),
        (
            "{include: [t], columns: [grid], type: string}",
            "tables.columns.0.include.0: expected a pattern schema.table",
        ),
    ],
)
def test_a_choice_of_another_type_names_tables_columns_and_a_type_that_there_is(
    write: Write, entry: str, message: str
) -> None:
    assert message in refusal(write(f"{LEAST}  columns: [{entry}]\n"))

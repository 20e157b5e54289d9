"""The schema for editors takes every file that is shipped, and refuses what a schema can refuse."""

import json

import pytest
import yaml
from jsonschema import Draft7Validator

from penstock.config.json_schema import SHIPPED, pipeline_schema
from tests.config.bad_pipeline_files import BAD, LEAST
from tests.pipeline_env import ROOT

FILES = sorted([*ROOT.glob("include/pipelines/*.y*ml*"), *ROOT.glob("docker/pipelines/*.yaml")])


@pytest.fixture(scope="module")
def validator() -> Draft7Validator:
    return Draft7Validator(pipeline_schema())


def test_the_shipped_schema_is_that_of_the_models() -> None:
    Draft7Validator.check_schema(pipeline_schema())

    shipped = json.loads((ROOT / SHIPPED).read_text())
    assert shipped == pipeline_schema(), f"run: penstock validate --schema > {SHIPPED}"


def test_the_schema_takes_every_shipped_file_and_each_names_the_schema(validator: Draft7Validator) -> None:
    assert len(FILES) > 2
    for file in FILES:
        first, _, _ = file.read_text().partition("\n")
        assert [error.message for error in validator.iter_errors(yaml.safe_load(file.read_text()))] == [], file
        assert first.startswith("# yaml-language-server: $schema="), file
        assert (file.parent / first.partition("=")[2]).resolve() == ROOT / SHIPPED, file


@pytest.mark.parametrize("name", BAD)
def test_the_schema_refuses_what_a_schema_can(validator: Draft7Validator, name: str) -> None:
    bad = BAD[name]
    if bad.refused_by_schema is None:
        return
    file = yaml.safe_load(LEAST.format(name=name) + bad.text)

    assert validator.is_valid(file) is not bad.refused_by_schema


def test_the_schema_takes_amounts_as_numbers_texts_and_variables(validator: Draft7Validator) -> None:
    for amount in ("30", "90s", '"10m"', '"${BUDGET}"'):
        given = f"capture: {{time_budget: {amount}}}\ncopy: {{range_bytes: {amount.replace('s', 'MiB').replace('m', 'kB')}}}\n"
        assert validator.is_valid(yaml.safe_load(LEAST.format(name="one") + given)), amount


def test_every_key_says_what_it_means_or_looks_like(validator: Draft7Validator) -> None:
    silent = [
        f"{name}.{key}"
        for name, section in pipeline_schema()["definitions"].items()
        for key, value in section.get("properties", {}).items()
        if "description" not in value and "$ref" not in value
    ]

    assert len(silent) <= 5, silent

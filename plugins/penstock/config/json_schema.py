"""The JSON schema of a pipeline file, for editors: keys, forms, choices and defaults, with the models' own words.

It refuses what a schema can refuse; `penstock validate` knows more. A variable `${NAME}` may stand wherever a value does.
"""

from collections.abc import Iterator
from typing import Any

from penstock.config.model import Pipeline
from penstock.units import LOOKS

SHIPPED = "include/pipeline.schema.json"
"""Where the schema lies, below the project folder."""
_VARIABLE = {"$ref": "#/definitions/variable"}
_SCALARS = ("integer", "number", "boolean", "string")


def pipeline_schema() -> dict[str, Any]:
    """Return the schema as plain data."""
    schema = Pipeline.model_json_schema(by_alias=True)
    sections = {**schema.pop("$defs"), "Pipeline": schema}
    for section in sections.values():
        section.pop("title", None)
        for key, value in section["properties"].items():
            value.pop("title", None)
            sentences = (value.pop("description", "").replace("`", ""), _looks(value))
            said = [" ".join(each.split()) for each in sentences if each]
            shown = _with_variables(value)
            if isinstance(shown.get("default"), dict) and shown["default"]:
                del shown["default"]  # of a section: each of its keys has its own
            section["properties"][key] = {**shown, **({"description": " ".join(said)} if said else {})}
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "A pipeline of Penstock",
        **schema,
        "definitions": {
            **{name: sections[name] for name in sorted(sections) if name != "Pipeline"},
            "variable": {"type": "string", "pattern": r"\$\{\w+\}", "description": "A variable of the environment."},
        },
    }


def _with_variables(value: dict[str, Any]) -> dict[str, Any]:
    """Let a variable stand for every value that is no free text; one level of alternatives."""
    if "$ref" in value:
        return {**value, "$ref": value["$ref"].replace("#/$defs/", "#/definitions/")}
    kept: dict[str, Any] = {key: value[key] for key in ("default", "description") if key in value}
    leaves = [_leaf(each) for each in _alternatives({key: value[key] for key in value if key not in kept})]
    if any(map(_is_restricted, leaves)):
        leaves.append(_VARIABLE)
    return {**(leaves[0] if len(leaves) == 1 else {"anyOf": leaves}), **kept}


def _alternatives(value: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if "anyOf" not in value:
        yield value
    for each in value.get("anyOf", ()):
        yield from _alternatives(each)


def _leaf(value: dict[str, Any]) -> dict[str, Any]:
    return {**value, "items": _with_variables(value["items"])} if "items" in value else value


def _is_restricted(value: dict[str, Any]) -> bool:
    free_text = value.get("type") == "string" and not {"enum", "const", "pattern"} & set(value)
    return value.get("type") in _SCALARS and not free_text


def _looks(value: dict[str, Any]) -> str | None:
    """Take away what annotations say of a value's form, and return it as a sentence."""
    inner = [each for each in (*value.get("anyOf", ()), value.get("items")) if isinstance(each, dict)]
    found = [said for said in (value.pop(LOOKS, None), *map(_looks, inner)) if said]
    return found[0] if found and found[0][0].isupper() else f"{found[0][0].upper()}{found[0][1:]}." if found else None

"""The settings in force: each with its value and default as a person writes them, and no secret."""

from pathlib import Path
from typing import Any

from penstock.config.model import Pipeline, load_pipeline
from penstock.page.settings import Setting, settings


def said(tmp_path: Path, text: str) -> dict[str, Setting]:
    file = tmp_path / "shop.yaml"
    file.write_text(f'name: shop\ntables: {{include: ["shop.*"]}}\n{text}')
    return {
        each.key: each for each in settings(load_pipeline(file, {"PENSTOCK_HOME": "/srv", "TOKEN": "s3cret-token"}))
    }


def test_what_the_file_says_otherwise_differs_and_is_written_with_its_unit(tmp_path: Path) -> None:
    found = said(tmp_path, "capture: {max_wal_bytes: 1GiB, time_budget: 90s, every: 10s, read_ahead: false}\n")

    assert {each.key for each in found.values() if each.differs} == {
        "capture.max_wal_bytes",
        "capture.time_budget",
        "capture.every",
        "capture.read_ahead",
    }
    assert found["capture.max_wal_bytes"] == Setting("capture.max_wal_bytes", "1.0 GiB", "256.0 MiB", True)
    assert found["capture.every"] == Setting("capture.every", "10 s", "not set", True)
    assert found["capture.read_ahead"] == Setting("capture.read_ahead", "false", "true", True)
    assert found["merge.schedule"] == Setting("merge.schedule", "*/5 * * * *", "*/5 * * * *", False)


def test_a_key_without_a_default_differs_from_nothing(tmp_path: Path) -> None:
    found = said(tmp_path, "")

    assert (found["tables.include"].value, found["tables.include"].default) == ("shop.*", None)
    assert not any(each.differs for each in found.values())


def test_every_key_of_the_file_is_there(tmp_path: Path) -> None:
    def keys(section: Any, above: str = "") -> set[str]:
        found = set()
        for name, field in type(section).model_fields.items():
            value, key = getattr(section, name), f"{above}{field.alias or name}"
            found |= keys(value, f"{key}.") if hasattr(type(value), "model_fields") else {key}
        return found

    assert said(tmp_path, "").keys() == keys(Pipeline.model_validate({"name": "shop", "tables": {"include": ["s.*"]}}))


def test_no_secret_is_shown(tmp_path: Path) -> None:
    found = said(
        tmp_path,
        "health: {heartbeat: 'https://hc.example.com/${TOKEN}'}\n"
        "spark: {conf: {spark.my.key: '${TOKEN}'}}\n"
        "landing: {uri: 's3://bucket/prefix', options: {region: '${TOKEN}'}}\n",
    )

    assert "s3cret-token" not in repr(found)
    assert (found["health.heartbeat"].value, found["landing.options"].value) == ("set", "region")
    assert found["spark.conf"].value == "spark.my.key"

"""Changes of a table's key: rows are matched by the old one before its place in the stream, and by the new one after it."""

from __future__ import annotations

from tests.pipeline_env import PipelineEnv
from tests.scenarios.key_changes import change_keys


def test_changes_of_the_key_are_followed_with_rows_before_within_and_after_them(env: PipelineEnv) -> None:
    assert change_keys(env) == []

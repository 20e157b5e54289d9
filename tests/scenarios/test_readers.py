"""What docs/reading.md says to type, typed: PyIceberg, DuckDB and Spark SQL answer one query alike, deleted rows gone."""

import re
from typing import Any
from urllib.parse import quote

import pytest

from tests.pipeline_env import ROOT, PipelineEnv

SALES = """
create schema sales;
create table sales.order_line (order_id int, line_no int, quantity int, primary key (order_id, line_no));
insert into sales.order_line select 1, n, n * 10 from generate_series(1, 5) n;
insert into sales.order_line values (2, 1, 1);
"""


def block(heading: str, language: str) -> str:
    """Return what the page says to type below a heading."""
    section = (ROOT / "docs" / "reading.md").read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    (found,) = re.findall(rf"```{language}\n(.*?)```", section, re.DOTALL)
    return str(found)


@pytest.mark.slow
def test_three_readers_answer_the_same_query_as_the_page_says(
    env16: PipelineEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    env16.settings |= {"tables": {"include": ["sales.*"]}}
    env16.bootstrap(SALES)
    env16.follow(
        "delete from sales.order_line where line_no = 3; update sales.order_line set quantity = 0 where line_no = 5"
    )
    assert env16.lake is not None
    server = env16.lake.database.server
    address = f"postgres:{quote(server.password)}@127.0.0.1:{server.port}/{env16.lake.database.name}"
    variables = dict(re.findall(r"^export (\w+)='?([^'\n]+)'?$", block("PyIceberg", "sh"), re.MULTILINE))
    uri = variables["PYICEBERG_CATALOG__LAKE__URI"].replace("reader:...@db.example.com/penstock", address)
    for name, value in {**variables, "PYICEBERG_CATALOG__LAKE__URI": uri}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", __import__("pyiceberg.utils.config").utils.config.Config())

    answers: dict[str, list[tuple[int, int]]] = {}
    for reader in ("PyIceberg", "DuckDB", "Spark SQL"):  # Spark in the tests' own session, which has a login
        names: dict[str, Any] = {}
        exec(block(reader, "python").replace("shop.sales", f"{env16.name}.sales"), names)
        answers[reader] = sorted((row["line_no"], row["quantity"]) for row in names["rows"].to_pylist())
    statement = block("Spark SQL", "sql").replace("lake.shop.", f"{env16.lake.name}.{env16.name}.").rstrip(";\n")
    answers["SQL"] = sorted(tuple(row) for row in env16.spark.sql(statement).collect())

    assert set(map(str, answers.values())) == {str([(1, 10), (2, 20), (4, 40), (5, 0)])}

"""The statements we send, as text; spaces and line breaks do not count."""

from penstock.lake import ddl, properties
from penstock.lake.columns import LakeColumn

ID = LakeColumn("id", "bigint")
NAME = LakeColumn("na`me", "string")
DAY = LakeColumn("day", "date")
TAGS = LakeColumn("tags", "map<string,string>")


def clean(sql: str) -> str:
    return " ".join(sql.split())


def test_a_table_is_made_with_its_columns_and_properties_in_order() -> None:
    made = ddl.create_table("lake", ("shop", "public", "or`ders"), (ID, NAME), {"b": "it's", "a": "1"})

    assert clean(made) == (
        "create table if not exists `lake`.`shop`.`public`.`or``ders` ( `id` bigint, `na``me` string ) "
        r"using iceberg tblproperties ( 'a' = '1', 'b' = 'it\'s' )"
    )


def test_namespaces_are_made_from_the_outside_in_and_once() -> None:
    made = ddl.create_namespaces("lake", [("shop", "public"), ("shop",), ("shop", "audit")])

    assert made == [
        "create namespace if not exists `lake`.`shop`",
        "create namespace if not exists `lake`.`shop`.`audit`",
        "create namespace if not exists `lake`.`shop`.`public`",
    ]


def test_new_tables_are_of_format_3_and_the_pipeline_file_wins_over_the_rest() -> None:
    found = properties.for_new_table("shop", {"write.parquet.compression-level": "9", "x": "y"})

    assert found["format-version"] == "3"
    assert (found["write.parquet.compression-level"], found["x"], found["penstock.pipeline"]) == ("9", "y", "shop")


def test_every_commit_is_marked_with_pipeline_lsn_and_attempt() -> None:
    marks = properties.watermark("shop", 0x16B374D848, "a7")

    assert marks == {"penstock.pipeline": "shop", "penstock.lsn": "16/B374D848", "penstock.attempt": "a7"}

"""Which pyspark an application imports."""

from pathlib import Path

from penstock_spark.installed import prefer_installed


def test_the_installed_package_stands_where_its_own_zip_was(tmp_path: Path) -> None:
    home = tmp_path / "pyspark"
    home.mkdir()
    (home / "__init__.py").touch()
    path = ["/app.zip", f"{home}/python/lib/pyspark.zip", "/other"]

    prefer_installed(path, {"SPARK_HOME": str(home)})

    assert path == ["/app.zip", str(tmp_path), "/other"]


def test_a_spark_that_is_not_the_installed_package_keeps_its_zip(tmp_path: Path) -> None:
    path = [f"{tmp_path}/python/lib/pyspark.zip"]

    prefer_installed(path, {"SPARK_HOME": str(tmp_path)})
    prefer_installed(path, {})

    assert path == [f"{tmp_path}/python/lib/pyspark.zip"]

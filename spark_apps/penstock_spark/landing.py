"""Landing files as Spark's driver sees them: which contract their footers name."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from penstock.contract.manifest import FileRef
from penstock.contract.schema import CONTRACT_KEY, CONTRACT_VERSION, COPY_VERSION
from penstock.errors import LakeError
from penstock.lake.columns import lake_column
from penstock.shapes.mirror_column import MirrorColumn
from penstock.values.lake_types import holds
from penstock_spark.failures import landing, trouble
from penstock_spark.session import java

AT_ONCE = 8
"""So many files the driver looks at, or copies, at once: a store answers many as fast as one."""
_FEW = 3


def check_changes(session: SparkSession, files: Sequence[FileRef]) -> None:
    """Look at the footer of each file of changes; raises LakeError("landing-file-missing") or ("landing-version")."""
    _check_all(session, [file.uri for file in files], CONTRACT_VERSION)


def check_copy(session: SparkSession, files: Sequence[FileRef], columns: Sequence[MirrorColumn]) -> None:
    """Look at the footer of each file of a copy.

    Raises LakeError("landing-file-missing"), ("landing-version"), or ("schema-change") where the lake has another type
    now for a column that was landed as values.
    """
    _check_all(session, [file.uri for file in files], COPY_VERSION)
    types = {column.name: lake_column(column).type for column in columns}
    changed = sorted({name for file in files for name, type_ in _typed(file) if not holds(types[name], type_)})
    if changed:
        raise LakeError(
            "schema-change",
            f"expected the copy to hold values of the lake's types, but those of {', '.join(changed)} have changed; "
            "copy the table again",
        )


def _typed(file: FileRef) -> Iterator[tuple[str, str]]:
    """Yield the lake's columns of which a file holds values, with the types of these."""
    names = dict(zip(file.columns, file.names, strict=True))
    for column, type_ in file.typed:
        if (name := names[column]) is not None:
            yield name, type_


def _check_all(session: SparkSession, uris: Sequence[str], expected: int) -> None:
    if len(uris) < _FEW:
        for uri in uris:
            check_contract(session, uri, expected)
        return
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="landing") as workers:
        list(workers.map(lambda uri: check_contract(session, uri, expected), uris))


def check_contract(session: SparkSession, uri: str, expected: int) -> None:
    """Require that a file was written by this version of the contract, as its footer says; raises what `check_changes` does.

    A store in trouble proves nothing of the file: LakeError("landing-unreachable").
    """
    hadoop = session.sparkContext._jsc.hadoopConfiguration()
    no_rows = java("org.apache.parquet.format.converter.ParquetMetadataConverter").SKIP_ROW_GROUPS
    try:
        path = java("org.apache.hadoop.fs.Path")(uri)
        footer = java("org.apache.parquet.hadoop.ParquetFileReader").readFooter(hadoop, path, no_rows)
    except Py4JJavaError as error:  # a missing file and a cut one fail alike, in different Java classes
        if trouble(error, session):
            with landing(session, uri, "landing-unreachable"):
                raise
        cause = error.java_exception.getClass().getSimpleName()
        raise _missing(uri, cause) from None
    version = footer.getFileMetaData().getKeyValueMetaData().get(CONTRACT_KEY.decode())
    if version != str(expected):
        raise LakeError("landing-version", f"{uri} must have contract version {expected}, got {version} instead")


def _missing(uri: str, cause: str) -> LakeError:
    return LakeError("landing-file-missing", f"expected a whole landing file at {uri}, got {cause}; restore the file")

"""The engines that make values of the server's texts, behind one face: texts in, values out, NULL for what misfits."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from penstock.engine import casts
from penstock.engine.duck import Duck
from penstock.values.lake_types import describe
from penstock.values.parsed import parse


class Engine(Protocol):
    """Cast texts to a lake type that it knows."""

    def knows(self, lake_type: str) -> bool: ...
    def cast(self, texts: Sequence[str | None], lake_type: str) -> list[object]: ...


@dataclass(frozen=True)
class DuckDb:
    """What merges and changelogs do, and copies with a text that does not parse."""

    db: Duck

    def knows(self, lake_type: str) -> bool:
        return bool(lake_type)

    def cast(self, texts: Sequence[str | None], lake_type: str) -> list[object]:
        return self.values(texts, casts.cast_to("t", lake_type))

    def values(self, texts: Sequence[str | None], expression: str) -> list[object]:
        """Return an expression of the text `t` for each text; values come through Arrow, as the engine writes them."""
        self.db.connection.register("texts", pa.table({"n": range(len(texts)), "t": pa.array(texts, pa.string())}))
        found = self.db.connection.sql(f"select {expression} as v from texts order by n").to_arrow_table()
        return list(found["v"].to_pylist())


@dataclass(frozen=True)
class Arrow:
    """What copies do: a file whose texts do not all parse is landed as texts."""

    def knows(self, lake_type: str) -> bool:
        return describe(lake_type).parsed

    def cast(self, texts: Sequence[str | None], lake_type: str) -> list[object]:
        try:
            return list(parse(pa.array(texts, pa.string()), lake_type).to_pylist())
        except pa.ArrowInvalid:
            if len(texts) == 1:
                return [None]
            return [value for text in texts for value in self.cast([text], lake_type)]

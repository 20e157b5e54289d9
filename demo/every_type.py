"""`shop.every_type`: one column per type of PostgreSQL, each with the values that break replications.

The texts are PostgreSQL's own input, the first of each an ordinary one. A type that this server can't make (xml
needs a library, hstore and vector an extension) is left out, so that the table is as wide as the server allows.
"""

from collections.abc import Mapping
from random import Random

from psycopg import Connection, errors, sql

TABLE = sql.Identifier("shop", "every_type")

OWN_TYPES = (
    "create type shop.mood as enum ('ok', 'so so', 'it''s \"bad\"', 'ÄRGER', '')",
    "create type shop.place as (street text, number int)",
    "create domain shop.percent as numeric(5, 2) check (value between 0 and 100)",
    "create domain shop.words as text[]",
)
EXTENSIONS = ("hstore", "vector")

TYPES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "bool_": ("boolean", ("true", "false")),
    "int2_": ("smallint", ("7", "-32768", "32767")),
    "int4_": ("integer", ("7", "-2147483648", "2147483647")),
    "int8_": ("bigint", ("7", "-9223372036854775808", "9223372036854775807")),
    "float4_": ("real", ("1.5", "NaN", "Infinity", "-Infinity", "-0", "1e-45", "3.4028235e38", "0.1")),
    "float8_": (
        "double precision",
        ("1.5", "NaN", "Infinity", "-Infinity", "-0", "5e-324", "1.7976931348623157e308", "0.30000000000000004"),
    ),
    "numeric_": (
        "numeric",
        ("1.50", "NaN", "Infinity", "-Infinity", "0.000", "1e-100", "123456789012345678901234567890.123456789"),
    ),
    "numeric_10_2": ("numeric(10, 2)", ("1.50", "NaN", "-99999999.99", "0.005")),
    "numeric_38_18": ("numeric(38, 18)", ("1.5", "99999999999999999999.999999999999999999", "NaN")),
    "numeric_38_0": ("numeric(38, 0)", ("1", "-99999999999999999999999999999999999999")),
    "numeric_60_30": ("numeric(60, 30)", ("1.5", "999999999999999999999999999999.999999999999999999999999999999")),
    "numeric_5_m2": ("numeric(5, -2)", ("1200", "-9999900")),
    "money_": ("money", ("1234.56", "-92233720368547758.08")),
    "text_": ("text", ("text", "", "  ", "NULL", "\\N", 'it\'s "quoted"\n\ttab\\', "naïve 漢字 🦆", "e\u0301 \u200b")),
    "varchar_10": ("varchar(10)", ("text", "", "1234567890")),
    "char_5": ("char(5)", ("ab", "abcde", "")),
    "one_char": ('"char"', ("x", "", "ÿ")),
    "name_": ("name", ("name", "")),
    "bytea_": ("bytea", ("\\x00ff10", "\\x", "\\x5c27")),
    "date_": ("date", ("2024-02-29", "infinity", "-infinity", "0044-03-15 BC", "5874897-12-31", "1582-10-10")),
    "time_": ("time", ("12:34:56.789", "24:00:00", "00:00:00")),
    "time_0": ("time(0)", ("12:34:56", "23:59:59.6")),
    "timetz_": ("timetz", ("12:34:56.789+05:30", "24:00:00-15:59")),
    "timestamp_": (
        "timestamp",
        ("2024-02-29 12:34:56.789012", "infinity", "-infinity", "0044-03-15 12:00 BC", "294276-12-31 23:59:59.999999"),
    ),
    "timestamp_3": ("timestamp(3)", ("2024-02-29 12:34:56.789", "1969-12-31 23:59:59.9996")),
    "timestamptz_": (
        "timestamptz",
        ("2024-02-29 12:34:56+05:30", "infinity", "-infinity", "4714-11-24 00:00+00 BC", "0001-01-01 00:00+00"),
    ),
    "interval_": (
        "interval",
        ("1 day", "1 year -2 days 03:04:05.000006", "-178000000 years", "0", "-00:00:00.000001"),
    ),
    "uuid_": ("uuid", ("01234567-89ab-cdef-0123-456789abcdef", "00000000-0000-0000-0000-000000000000")),
    "json_": ("json", ('{"b": 1,  "a":[null], "b": 2}', "null", ' "text" ', "1e5000")),
    "jsonb_": ("jsonb", ('{"b": 1, "a": [null]}', "null", '"\\u00e9\\n"', "1.10", "{}")),
    "jsonpath_": ("jsonpath", ("$.a[*] ? (@ > 1)",)),
    "xml_": ("xml", ("<a>1</a>", "<!-- c --><a b='1'> <c/></a>")),
    "hstore_": ("hstore", ("a=>1", 'a=>NULL, "b c"=>"NULL", "q\\""=>""', "")),
    "vector_": ("vector(3)", ("[1,2,3]", "[-0.5,1e-7,3e10]")),
    "ints": ("int[]", ("{1,2}", "{1,NULL,-3}", "{}", "{{1,2},{3,4}}", "[0:1]={1,2}")),
    "bigints": ("bigint[]", ("{1,2}", "{9223372036854775807,NULL}")),
    "floats": ("double precision[]", ("{1.5,-0}", "{NaN,Infinity,NULL}")),
    "numerics": ("numeric(10, 2)[]", ("{1.50}", "{NaN,NULL,-0.01}")),
    "bools": ("boolean[]", ("{t,f}", "{NULL}")),
    "texts": ("text[]", ("{a,b}", '{NULL,"NULL","","a,b","q\\"\\\\ {}"," "}', "{}", "[2:2]={x}")),
    "dates": ("date[]", ("{2024-02-29}", "{infinity,NULL}")),
    "timestamps": ("timestamptz[]", ('{"2024-02-29 12:00+00"}', '{"0044-03-15 12:00+00 BC",-infinity}')),
    "byteas": ("bytea[]", ('{"\\\\x00ff"}', '{"\\\\x",NULL}')),
    "uuids": ("uuid[]", ("{01234567-89ab-cdef-0123-456789abcdef}", "{}")),
    "jsonbs": ("jsonb[]", ('{"{\\"a\\": 1}"}', '{"null",NULL}')),
    "mood": ("shop.mood", ("ok", "so so", 'it\'s "bad"', "ÄRGER", "")),
    "moods": ("shop.mood[]", ("{ok}", '{"so so","it\'s \\"bad\\"","",NULL}')),
    "place": ("shop.place", ("(Street,7)", '("1st ""A"", (x)",)', "(,)")),
    "places": ("shop.place[]", ('{"(Street,7)"}', "{NULL}")),
    "percent": ("shop.percent", ("12.50", "0", "100")),
    "words": ("shop.words", ("{a,b}", '{"",NULL}')),
    "int4range_": ("int4range", ("[1,5)", "empty", "(,)", "[3,3]")),
    "int8range_": ("int8range", ("[1,5)", "[1,)")),
    "numrange_": ("numrange", ("[1.5,2.50)", "(,0]", "[NaN,NaN]")),
    "daterange_": ("daterange", ("[2024-01-01,2024-02-29]", "[-infinity,infinity]", "empty")),
    "tsrange_": ("tsrange", ('["2024-01-01 00:00","2024-02-29 12:00")', "(,)")),
    "tstzrange_": ("tstzrange", ('["2024-01-01 00:00+01","2024-02-29 12:00+00")', "[-infinity,)")),
    "int4multirange_": ("int4multirange", ("{[1,3),[5,7)}", "{}")),
    "inet_": ("inet", ("192.168.0.1/24", "::ffff:1.2.3.4", "10.0.0.1")),
    "cidr_": ("cidr", ("192.168.0.0/24", "2001:db8::/32")),
    "macaddr_": ("macaddr", ("08:00:2b:01:02:03",)),
    "macaddr8_": ("macaddr8", ("08:00:2b:01:02:03:04:05",)),
    "bit_4": ("bit(4)", ("1010", "0000")),
    "varbit_": ("varbit", ("101", "")),
    "point_": ("point", ("(1.5,-0)", "(NaN,Infinity)")),
    "line_": ("line", ("{1,-1,0}",)),
    "lseg_": ("lseg", ("[(0,0),(1,1)]",)),
    "box_": ("box", ("(1,1),(0,0)",)),
    "boxes": ("box[]", ("{(1,1),(0,0);(3,3),(2,2)}",)),
    "path_": ("path", ("[(0,0),(1,1)]", "((0,0),(1,1))")),
    "polygon_": ("polygon", ("((0,0),(1,1),(2,0))",)),
    "circle_": ("circle", ("<(0,0),1.5>",)),
    "tsvector_": ("tsvector", ("'a':1A 'it''s':2", "")),
    "tsquery_": ("tsquery", ("'a' & !'b'",)),
    "oid_": ("oid", ("4294967295", "0")),
    "regclass_": ("regclass", ("pg_catalog.pg_class", "shop.customers", "0")),
    "xid8_": ("xid8", ("18446744073709551615",)),
    "pg_lsn_": ("pg_lsn", ("16/B374D848", "0/0")),
}


def create_extensions(connection: Connection) -> None:
    """Make those extensions that the server has; not all of them let anybody but a superuser do that."""
    available = connection.execute("select name from pg_available_extensions where name = any(%s)", (list(EXTENSIONS),))
    for (name,) in available.fetchall():
        connection.execute(sql.SQL("create extension {}").format(sql.Identifier(name)))


def create(connection: Connection) -> None:
    """Make the table and fill it: each value in some row, and a row of nothing but NULL."""
    for statement in OWN_TYPES:
        connection.execute(statement.encode())
    types = {name: entry for name, entry in TYPES.items() if _can_make(connection, *entry)}
    columns = [sql.SQL("{} {}").format(sql.Identifier(name), sql.SQL(type_)) for name, (type_, _) in types.items()]
    connection.execute(sql.SQL("create table {} (id int primary key, {})").format(TABLE, sql.SQL(", ").join(columns)))
    insert_row(connection, 0, dict.fromkeys(types))
    for row in range(max(len(values) for _, values in types.values())):
        insert_row(connection, 1 + row, {name: values[row % len(values)] for name, (_, values) in types.items()})


def insert_row(connection: Connection, key: int, row: Mapping[str, str | None]) -> None:
    """Insert one row; its texts are cast by the server."""
    statement = sql.SQL("insert into {} (id, {}) values ({}, {})").format(
        TABLE, sql.SQL(", ").join(map(sql.Identifier, row)), key, sql.SQL(", ").join(map(sql.Literal, row.values()))
    )
    connection.execute(statement)


def columns(connection: Connection) -> list[str]:
    """List the columns that this server's table has, without the key."""
    return [column.name for column in connection.execute("select * from shop.every_type limit 0").description or []][1:]


def any_value(dice: Random, column: str) -> str | None:
    """Choose one of the column's values, or now and then NULL."""
    return None if dice.random() < 0.1 else dice.choice(TYPES[column][1])


def _can_make(connection: Connection, type_: str, values: tuple[str, ...]) -> bool:
    probe = sql.SQL("select {}::{}::text").format(values[0], sql.SQL(type_))
    try:
        with connection.transaction():
            connection.execute(probe)
    except (errors.UndefinedObject, errors.FeatureNotSupported):
        return False
    return True

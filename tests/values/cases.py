"""One table of types and telling values, as SQL literals; the tests walk it from server to lake and back."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    """A type, its lake type, literals that fit, and literals that must become misfits."""

    type: str
    lake: str
    fits: tuple[str, ...]
    misfits: tuple[str, ...] = ()
    known_as: str | None = None
    """The type under which the driver can read the values, if it can't under its own."""
    since: int = 14
    """The first major version that has the type or takes these literals."""

    def __str__(self) -> str:
        return self.type


SETUP = """
create type mood as enum ('fine', 'NULL', 'so, so', '');
create type pair as (number int, "the text" text);
create type span as range (subtype = float8);
create domain price as numeric(8,2);
create domain small_price as price check (value < 100);
create domain scores as int[];
"""

FAR = ("infinity", "-infinity", "0044-03-15 BC", "4713-01-01 BC", "10000-01-01")
LONG_TEXT = "x" * 5000 + '\\"' * 5000

CASES = [
    Case("bool", "boolean", ("t", "f")),
    Case("int2", "int", ("0", "1", "-1", "32767", "-32768")),
    Case("int4", "int", ("0", "7", "-7", "2147483647", "-2147483648")),
    Case("int8", "bigint", ("0", "-1", "9223372036854775807", "-9223372036854775808")),
    Case(
        "float4",
        "float",
        ("0", "-0", "1", "0.1", "1e-45", "3.4028235e38", "-1.1754944e-38", "16777216", "NaN", "Infinity", "-Infinity"),
    ),
    Case(
        "float8",
        "double",
        (
            *(
                "0",
                "-0",
                "1",
                "0.1",
                "0.30000000000000004",
                "5e-324",
                "1.7976931348623157e308",
                "2.2250738585072014e-308",
            ),
            *("1e15", "123456789012345", "1e22", "9007199254740993", "NaN", "Infinity", "-Infinity"),
        ),
    ),
    Case("numeric", "string", ("0", "1.50", "-0.000001", "1e-20", "1e40", "NaN", "Infinity", "-Infinity")),
    Case("numeric(10,2)", "decimal(10,2)", ("0", "1.5", "-12345678.99", "99999999.99", "-0.01"), ("NaN",)),
    Case("numeric(38,10)", "decimal(38,10)", ("0", "1e-10", "9999999999999999999999999999.9999999999"), ("NaN",)),
    Case("numeric(5,0)", "decimal(5,0)", ("0", "-99999", "12"), ("NaN",)),
    Case("numeric(4,4)", "decimal(4,4)", ("0", "0.0001", "-0.9999"), ("NaN",)),
    Case("numeric(3,5)", "decimal(5,5)", ("0", "0.00999", "-0.00001"), ("NaN",), since=15),
    Case("numeric(3,-2)", "decimal(5,0)", ("0", "99900", "-1251"), ("NaN",), since=15),
    Case("numeric(39,1)", "string", ("99999999999999999999999999999999999999.9", "NaN")),
    Case("numeric(30,-10)", "string", ("1e39",), since=15),
    Case("numeric(2,40)", "string", ("0.99e-38",), since=15),
    Case("date", "date", ("0001-01-01", "1582-10-10", "1900-02-28", "2024-02-29", "9999-12-31"), FAR),
    Case(
        "timestamp",
        "timestamp_ntz",
        (
            *("0001-01-01 00:00:00", "1582-10-10 12:00:00.5", "1969-12-31 23:59:59.999999"),
            *("2024-02-29 23:59:59.000001", "9999-12-31 23:59:59.999999"),
        ),
        (*FAR, "294276-12-31 23:59:59.999999"),
    ),
    Case("timestamp(0)", "timestamp_ntz", ("2024-02-29 23:59:59.6",), ("infinity",)),
    Case(
        "timestamptz",
        "timestamp",
        (
            *("0001-01-01 00:00:00+00", "1883-11-18 12:00:00-05", "2024-03-31 02:30:00+05:30:15"),
            *("2024-06-30 12:00:00.12345+02", "9999-12-31 23:59:59.999999+00"),
        ),
        (*FAR, "0001-01-01 00:00:00+05", "9999-12-31 23:59:59-05"),
    ),
    Case("bytea", "binary", ("", "\\x00", "\\x00ff10ABcd", "\\x5c7827", "\\x" + "ab" * 100_000)),
    Case("price", "decimal(8,2)", ("1", "999999.99"), ("NaN",)),
    Case("small_price", "decimal(8,2)", ("1", "99.99")),
    # exact texts
    Case("text", "string", ("", "NULL", "ü\t\n\r\"'\\ ", "\\N", "a,b")),
    Case("varchar(5)", "string", ("", "a  ")),
    Case("char(5)", "string", ("", "ab")),
    Case('"char"', "string", ("a", "")),
    Case("name", "string", ("Mixed Case",)),
    Case("time", "string", ("24:00:00", "00:00:00.000001")),
    Case("timetz", "string", ("24:00:00-15:59",)),
    Case("interval", "string", ("1 mon -2 days 03:00:00.5", "-178000000 years")),
    Case("uuid", "string", ("A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11",)),
    Case("json", "string", ('{"b" : 1,  "a":[null]}', "null")),
    Case("jsonb", "string", ('{"b" : 1,  "a":[null], "b":1.00}', "null")),
    Case("xml", "string", ("<a>&lt;</a>",)),
    Case("money", "string", ("-1234567.89",)),
    Case("bit(3)", "string", ("101",)),
    Case("varbit", "string", ("", "1")),
    Case("inet", "string", ("::ffff:1.2.3.4/64", "10.0.0.1")),
    Case("macaddr", "string", ("08:00:2b:01:02:03",)),
    Case("int4range", "string", ("[1,4]", "empty", "(,)")),
    Case("tstzmultirange", "string", ("{[2024-01-01,2024-02-01)}", "{}")),
    Case("span", "string", ("[0.5,)",)),
    Case("mood", "string", ("fine", "NULL", "so, so", "")),
    Case("pair", "string", ('(1,"x ""y""")', "(,)")),
    Case("point", "string", ("(1.5,-0)",)),
    Case("box", "string", ("(1,1),(0,0)",)),
    Case("tsvector", "string", ("'a':1A 'b c'",)),
    Case("oid", "string", ("4294967295",)),
    Case("xid8", "string", ("18446744073709551615",)),
    Case("pg_lsn", "string", ("16/B374D848",)),
    Case("regclass", "string", ("pg_class",)),
    Case("int2vector", "string", ("1 2 3",)),
    # arrays
    Case(
        "int4[]",
        "array<int>",
        ("{}", "{1,2,3}", "{NULL}", "{1,NULL,-3}", "{" + "1," * 50_000 + "2}"),
        ("{{1,2},{3,4}}", "[0:1]={1,2}", "[2:2]={7}", "{{1}}"),
    ),
    Case("scores", "array<int>", ("{1,NULL}",), ("{{1}}",)),
    Case("int2[]", "array<int>", ("{-32768,0}",)),
    Case("int8[]", "array<bigint>", ("{9223372036854775807,NULL}",)),
    Case("bool[]", "array<boolean>", ("{t,f,NULL}", "{}")),
    Case("float4[]", "array<float>", ("{0.1,NaN,-Infinity,-0,1e-45,NULL}",)),
    Case("float8[]", "array<double>", ("{0.1,NaN,Infinity,-0,5e-324,1e100}",)),
    Case("numeric[]", "array<string>", ("{1.50,NaN,NULL,1e40}",), ("{{1}}",)),
    Case("numeric(10,2)[]", "array<decimal(10,2)>", ("{1.5,NULL,-0.01}",), ("{1,NaN}",)),
    Case("price[]", "array<decimal(8,2)>", ("{1,2.25}",), ("{NaN,NULL}",), known_as="numeric(8,2)[]"),
    Case("date[]", "array<date>", ("{2024-02-29,NULL,0001-01-01}",), ("{2024-01-01,infinity}", "{{2024-01-01}}")),
    Case(
        "timestamp[]",
        "array<timestamp_ntz>",
        ('{"2024-02-29 00:00:00",NULL,"0001-01-01 00:00:00.5"}', "{}"),
        ("{infinity}", '{"0044-03-15 00:00:00 BC"}', '{{"2024-02-29 00:00:00"}}'),
    ),
    Case("timestamptz[]", "array<timestamp>", ('{"2024-02-29 00:00:00+05:30",NULL}',), ("{-infinity,NULL}",)),
    Case("bytea[]", "array<binary>", ('{"\\\\x","\\\\x00ff5c",NULL}',), ('{{"\\\\x00"}}',)),
    Case(
        "text[]",
        "array<string>",
        (
            "{}",
            '{a,"b c",""}',
            '{NULL,"NULL","null",nUll}',
            '{"a\\"b","c\\\\d","{}","x,y","\\\\\\""}',
            '{"line\nbreak","tab\t","ü",/}',
            '{" lead","trail ","[1:2]=","="}',
            '{"\u00a0","\u3000x"}',
            '{"' + LONG_TEXT.replace("\\", "\\\\").replace('"', '\\"') + '"}',
            "{" + "a," * 30_000 + '"b c"}',
        ),
        ("{{a,b},{c,d}}", "[0:0]={a}"),
    ),
    Case("char(3)[]", "array<string>", ("{a,NULL}",)),
    Case("uuid[]", "array<string>", ("{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}",)),
    Case("jsonb[]", "array<string>", ('{"{\\"a\\": [1, null]}",NULL}',)),
    Case("mood[]", "array<string>", ('{fine,"NULL","so, so",""}',)),
    Case("pair[]", "array<string>", ('{"(1,\\"x y\\")"}',)),
    Case("interval[]", "array<string>", ('{"1 day 00:00:01"}',)),
    Case("int4range[]", "array<string>", ('{"[1,4)",empty}',)),
    Case("point[]", "array<string>", ('{"(1,2)"}',)),
    Case("name[]", "array<string>", ("{a}",)),
    Case("int2vector[]", "array<string>", ('{"1 2",3}',)),
    Case("box[]", "string", ("{(1,1),(0,0);(3,3),(2,2)}",)),
    Case("scores[]", "string", ('{"{1,2}"}',)),
]

# Texts that no such column renders, but that may come when a type changes under a window: lake type by type.
FOREIGN = {
    "bool": ("true", "1", "", "T", "yes"),
    "int4": ("", " 12 ", "+12", "012", "12.0", "12.7", "2147483648", "1e3", "x", "-0", "12\n"),
    "int8": ("", "9223372036854775808", "0x10"),
    "float4": ("", "1e39", "-1e39", "nan", "inf", "1.5d", "1.5f", "0x1p3", " 1 ", "1\n"),
    "float8": ("", "1e400", "-1e400", "Inf", "infinity", "1.5d", "1,5"),
    "numeric(10,2)": ("", "12345.678", "1.5", "1e-05", "123456789.00", "01.00", " 1.00", "1.00\n", "+1.00"),
    "date": ("", "2024", "2024-02", "2024-2-9", "2024-02-30", "0000-01-01", "2024-02-29 x", "2024-02-29\n", "epoch"),
    "timestamp": ("", "2024-02-29", "2024-02-29T00:00:00", "2024-02-29 00:00:00+02", "2024-02-29 24:00:00", "now"),
    "timestamptz": ("", "2024-02-29 00:00:00", "2024-02-29 00:00:00+02", "2024-02-29 00:00:00 Europe/Berlin"),
    "bytea": ("", "\\x0", "\\x0g", "00ff", "a\\000b"),
    "int4[]": ("", "1", "{", "{}}", "{1,}", "{,}", "{1,x}", "{1, 2}", "{2147483648}", '{"1"}', "{1}\n", "{null}"),
    "date[]": ("{2024-02-30}", "{epoch}"),
    "timestamp[]": ('{"2024-02-30 00:00:00"}', '{"NULL"}'),
    "text[]": ("", "a", "{a", "{a}}", "{a,}", "{a b}", '{"a}', '{"a"b}', '{"a\\n"}', "{a} ", '{a"b"}'),
}

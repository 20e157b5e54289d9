"""A connection says where a database is, and never gives its password to anyone but a driver."""

import json
import pickle
from contextlib import closing
from dataclasses import replace

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from penstock.config.connections import Connection
from penstock.errors import ConfigError
from penstock.source.arrow import connect_arrow
from stack.servers.postgres import Server

SECRET = "p@ss'w\\ord /?#%&=é"
NASTY = Connection("source", "127.0.0.1", 5433, "o'brien", SECRET, "Sales & more/%", {"sslmode": "disable"})


def environ(value) -> dict[str, str]:
    return {"AIRFLOW_CONN_SRC": value if isinstance(value, str) else json.dumps(value)}


FULL = {"conn_type": "postgres", "host": "db", "port": 5433, "login": "u", "password": SECRET, "schema": "shop"}


def read(value) -> Connection:
    return Connection.from_airflow_environment("src", environ(value))


def test_libpq_reads_back_every_nasty_character():
    words = conninfo_to_dict(NASTY.conninfo(application_name="a b"))

    assert words == {
        "host": "127.0.0.1",
        "port": "5433",
        "user": "o'brien",
        "password": SECRET,
        "dbname": "Sales & more/%",
        "sslmode": "disable",
        "application_name": "a b",
    }


def test_both_drivers_reach_a_database_by_it(postgres16: Server):
    with postgres16.temporary_database(NASTY.database) as database, closing(database.connect()) as superuser:
        password = NASTY.password.replace("'", "''")
        superuser.execute(f"create role \"o'brien\" login password '{password}'".encode())
        found = replace(NASTY, port=postgres16.port, options={})
        try:
            with psycopg.connect(found.conninfo()) as session:
                assert session.execute("select current_user").fetchone() == (found.user,)
            with connect_arrow(found, what="test", settings={}) as arrow:
                asked = sql.SQL("select current_user::text, current_database()::text")
                assert arrow.ask(asked) == [(found.user, found.database)]
        finally:
            superuser.execute('drop role "o\'brien"')


def test_the_password_and_the_options_are_in_no_representation():
    connection = Connection("s", "h", 1, "u", "hidden", "d", {"sslpassword": "hidden too"})

    shown = repr(connection) + str(connection) + connection.address + connection.jdbc_url()
    assert "hidden" not in shown


def test_the_jdbc_url_names_the_place_and_the_tls_mode_only():
    assert NASTY.jdbc_url() == "jdbc:postgresql://127.0.0.1:5433/Sales%20%26%20more%2F%25?sslmode=disable"
    assert Connection("s", "::1", 5432, "u", "p", "d").jdbc_url() == "jdbc:postgresql://[::1]:5432/d"


def test_an_environment_carries_a_connection_to_another_process():
    variables = NASTY.environment("source")

    assert variables["PENSTOCK_SOURCE_PORT"] == "5433"
    assert Connection.from_prefix("SOURCE", variables) == NASTY


def test_a_missing_variable_is_named():
    variables = NASTY.environment("source")
    del variables["PENSTOCK_SOURCE_USER"]

    with pytest.raises(ConfigError, match="PENSTOCK_SOURCE_USER is not set") as caught:
        Connection.from_prefix("source", variables)
    assert caught.value.slug == "connection-missing"


def test_a_connection_travels_to_a_task_in_a_closure():
    assert pickle.loads(pickle.dumps(NASTY)) == NASTY


def test_json_from_airflow_is_read_with_its_extra():
    expected = Connection("src", "db", 5433, "u", SECRET, "shop", {"sslmode": "require"})

    assert read({**FULL, "extra": {"sslmode": "require", "cursor": "dictcursor"}}) == expected
    assert read({**FULL, "extra": json.dumps({"sslmode": "require"})}) == expected


def test_a_port_of_its_own_is_not_needed():
    assert read({**FULL, "port": None}).port == 5432


def test_the_uri_that_airflow_itself_writes_is_read():
    airflow = pytest.importorskip("airflow.sdk").Connection
    written = airflow(**{**FULL, "conn_id": "src", "extra": json.dumps({"sslmode": "require"})}).get_uri()

    assert read(written) == Connection("src", "db", 5433, "u", SECRET, "shop", {"sslmode": "require"})


def test_a_uri_may_name_an_ipv6_host_or_a_folder_of_sockets():
    assert read("postgres://u:p@[::1]:5433/d").host == "::1"
    assert read("postgresql://u:p@%2Frun%2FPostgres/d").host == "/run/Postgres"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("", "AIRFLOW_CONN_SRC is not set"),
        ("{not json", "does not parse"),
        ({**FULL, "conn_type": "mysql"}, "expected the type postgres, got 'mysql'"),
        ({**FULL, "host": ""}, "expected a host"),
        ({**FULL, "login": None}, "expected a login"),
        ({**FULL, "schema": ""}, "expected a database name"),
        ({**FULL, "port": 70000}, "expected a port"),
        ({**FULL, "port": "many"}, "expected a port"),
        ({**FULL, "extra": {"sslmod": "require"}}, "did you mean 'sslmode'"),
        (f"postgres://u:{'x' * 3}[@h/d", "expected a URI"),
    ],
)
def test_what_is_wrong_is_said_without_the_secret(value, expected):
    with pytest.raises(ConfigError, match=expected) as caught:
        read(value)

    assert caught.value.slug == "connection-missing"
    assert SECRET not in str(caught.value)
    assert "xxx" not in str(caught.value)

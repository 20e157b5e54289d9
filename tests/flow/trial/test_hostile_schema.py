"""What owners of objects at the source have written runs no program on the scratch server, wherever it stands."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import Result

from stack.servers.postgres import Database

HOSTILE = """
create schema evil;
create function evil.run() returns int volatile language plpgsql as $$ begin return 1; end $$;
create function evil.f(int) returns int immutable language plpgsql as $$ begin return evil.run(); end $$;
create table evil.t (id int primary key); insert into evil.t values (1);
create index on evil.t ((evil.f(1)));
create index on public.customer ((evil.f(1)));
create statistics evil.s on (evil.f(1) + id), (id + 1) from evil.t;
create table public."we""ird'; --" (id int primary key, "c""'" int default evil.f(2));
alter publication penstock_shop add table public."we""ird'; --";
create role "{role}";
create function evil.set_config(text, text, boolean) returns text language sql as $$ select evil.run()::text $$;
create function evil.current_setting(text) returns text language sql as $$ select evil.run()::text $$;
create function evil.at_ddl() returns event_trigger language plpgsql as $$ begin perform evil.run(); end $$;
create or replace function evil.run() returns int volatile language plpgsql as $$
begin
  begin
    copy (select 1) to program '{program}';
  exception when insufficient_privilege then null;
  end;
  begin execute 'create role loot superuser'; exception when others then null; end;
  begin execute 'grant pg_execute_server_program to ' || quote_ident(session_user); exception when others then null; end;
  begin execute 'reset role'; copy (select 1) to program '{program}'; exception when others then null; end;
  return 1;
end $$;
"""
PATHS = (
    "evil, pg_catalog",
    "public;copy(select(1))to/**/program'{program_without_spaces}'",
)


@pytest.fixture
def marks() -> Iterator[Path]:
    """A folder in which any account may make a file."""
    folder = Path(tempfile.mkdtemp(prefix="penstock-marks-"))
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.parametrize("path", PATHS)
def test_a_hostile_schema_runs_no_program_of_the_scratch_server(
    planned: Callable[..., Result], shop: Database, marks: Path, path: str
) -> None:
    program, role = (
        f"cat>{marks}/ran",
        f"{shop.name} x\" superuser; --'",
    )  # it reads what COPY writes, so that no pipe breaks
    shop.execute(HOSTILE.format(program=program, role=role.replace('"', '""')))
    with shop.connect() as conn:
        conn.execute("select evil.run()")
        assert list(marks.iterdir()) == [marks / "ran"]  # it would, as a superuser
        (marks / "ran").unlink()
        conn.execute("drop role loot")
        conn.execute("create event trigger evil_one on ddl_command_end execute function evil.at_ddl()")
        conn.execute("alter event trigger evil_one disable")
        conn.execute("select set_config('search_path', %s, false)", [path.format(program_without_spaces=program)])
        conn.execute(f"alter database {shop.name} set search_path from current")
    try:
        result = planned(shop, "alter table public.customer add extra int; select count(*) from public.customer")
    finally:
        shop.execute(f"alter database {shop.name} reset search_path")
        shop.execute('drop event trigger evil_one; drop role "{}"'.format(role.replace('"', '""')))

    assert result.exit_code == 0, result.output
    assert "add-column: column extra was added" in result.stdout
    assert list(marks.iterdir()) == []


def test_what_takes_a_superuser_is_named_and_left_out(planned: Callable[..., Result], shop: Database) -> None:
    shop.execute("create function public.c_code() returns int language internal as 'pg_backend_pid'")

    needless = planned(shop, "alter table orders add x int")
    shop.execute(
        "create view public.uses as select public.c_code(); create table public.held (id int primary key default c_code())"
    )
    shop.execute("alter publication penstock_shop add table public.held")
    needed = planned(shop, "alter table orders add x int")

    assert needless.exit_code == 0, needless.output
    assert (
        "left out of the scratch database: CREATE FUNCTION public.c_code() RETURNS integer: permission denied for language internal"
        in needless.stdout
    )
    assert needed.exit_code == 3, needed.output
    assert "public.held is missing" in needed.output
    assert "CREATE FUNCTION public.c_code() RETURNS integer: permission denied for language internal" in needed.output

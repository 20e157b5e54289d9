"""Bad pipeline files and what is said of each: one table for the loader, `validate`, the schema for editors, and Airflow."""

from typing import NamedTuple

LEAST = 'name: {name}\ntables: {{include: ["public.*"]}}\n'


class Bad(NamedTuple):
    """What follows the least file, and the line, key and message of its one problem."""

    text: str
    line: int
    key: str | None
    message: str
    refused_by_schema: bool | None
    """None: YAML itself refuses it, so no schema is asked."""


ENVIRONMENT = {"PENSTOCK_HOME": "/srv", "PENSTOCK_EMPTY": ""}
BOMB = "".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}' if n else 'x'] * 9)}]\n" for n in range(12))
SIZE = "expected a size in bytes or with a unit, such as 512KiB, 256MiB or 1.5GiB"
SPAN = "expected a span in seconds or with a unit, such as 90s, 10m, 2h or 1d"
STORES = "the absolute path of a folder, file:///folder, or s3://bucket/prefix"
CRON = "expected a cron of five fields (minute, hour, day of month, month, day of week), such as '*/5 * * * *', one of @hourly, @daily, @midnight, @weekly, @monthly, @quarterly, @yearly, @annually, or null; got "
MEMORY = "expected a size of the JVM such as 2g or 1536m, 512m at least, with k, m, g or t and no b"
PATTERN = "expected a pattern schema.table such as public.* or public.orders"
QUOTED = 'a name that holds a dot, a star or a quote is written in double quotes: public."a.b"'

# fmt: off
BAD = {
    "unknown_key": Bad('captur: {}\n', 3, 'captur', "unknown key; did you mean 'capture'?", True),
    "words_as_cron": Bad('capture: {schedule: every minute}\n', 3, 'capture.schedule', f"{CRON}'every minute'", True),
    "four_fields": Bad("merge:\n  schedule: '* * * *'\n", 4, 'merge.schedule', f"{CRON}'* * * *'", True),
    "six_fields": Bad("merge: {schedule: '* * * * * *'}\n", 3, 'merge.schedule', f"{CRON}'* * * * * *'", True),
    "minute_61": Bad("maintain: {schedule: '61 * * * *'}\n", 3, 'maintain.schedule', "expected a cron with a time that exists, got '61 * * * *': [61 * * * *] is not acceptable, out of range", False),
    "no_such_day": Bad("verify: {schedule: '0 0 30 2 *'}\n", 3, 'verify.schedule', "expected a cron with a time that exists, got '0 0 30 2 *': failed to find next date", False),
    "unknown_preset": Bad("changelog: {schedule: '@fortnightly'}\n", 3, 'changelog.schedule', f"{CRON}'@fortnightly'", True),
    "continuous": Bad("changelog: {schedule: '@continuous'}\n", 3, 'changelog.schedule', f"{CRON}'@continuous'", True),
    "random_cron": Bad("health: {schedule: 'R * * * *'}\n", 3, 'health.schedule', f"{CRON}'R * * * *'", False),
    "schedule_is_a_list": Bad("capture: {schedule: ['* * * * *']}\n", 3, 'capture.schedule', 'expected a text, got a list', True),
    "span_of_ages": Bad('capture: {time_budget: 99999999999d}\n', 3, 'capture.time_budget', f"{SPAN}, 36500 d at most, got '99999999999d'", False),
    "timeout_of_years": Bad('capture: {statement_timeout: 300d}\n', 3, 'capture.statement_timeout', f"{SPAN}, 24 d at most, got '300d'", False),
    "runs_beyond_an_integer": Bad('changelog: {max_active_runs: 9999999999}\n', 3, 'changelog.max_active_runs', 'expected a whole number from 1 to 1000, got 9999999999', True),
    "yes_for_a_number": Bad('capture: {max_wal_bytes: yes}\n', 3, 'capture.max_wal_bytes', f'{SIZE}, got true', True),
    "memory_of_words": Bad('spark: {driver_memory: lots}\n', 3, 'spark.driver_memory', f"{MEMORY}, got 'lots'", True),
    "memory_with_b": Bad('spark: {driver_memory: 2gb}\n', 3, 'spark.driver_memory', f"{MEMORY}, got '2gb'", True),
    "memory_too_small": Bad('spark: {driver_memory: 64m}\n', 3, 'spark.driver_memory', f"{MEMORY}, got '64m'", False),
    "conf_is_no_text": Bad('spark: {conf: {spark.sql.ansi.enabled: true}}\n', 3, 'spark.conf.spark.sql.ansi.enabled', 'expected a text, got true; put it in quotes', True),
    "conf_of_others": Bad('spark: {conf: {hadoop.tmp.dir: /tmp}}\n', 3, 'spark.conf.hadoop.tmp.dir', 'not a setting spark.<name>, which is all that spark-submit passes on', True),
    "conf_size": Bad("spark: {conf: {spark.executor.memory: '2 GiB'}}\n", 3, 'spark.conf.spark.executor.memory', 'expected a size such as 512m or 2g, got a text', False),
    "connection_with_blanks": Bad("source: {connection: 'my source'}\n", 3, 'source.connection', "expected the id of an Airflow connection, letters, digits and _ . -, such as penstock_source, got 'my source'", True),
    "relative_landing": Bad('landing: {uri: landing}\n', 3, 'landing.uri', f"expected {STORES}, got 'landing'; a relative path would mean another folder for Airflow, Spark and the command line", True),
    "empty_landing": Bad("landing: {uri: ''}\n", 3, 'landing.uri', f"expected {STORES}, got ''; a relative path would mean another folder for Airflow, Spark and the command line", True),
    "empty_variable": Bad("landing:\n  uri: '${PENSTOCK_EMPTY}'\n", 4, 'landing.uri', 'the environment variable PENSTOCK_EMPTY is empty; set it for Airflow and for the command line', False),
    "missing_variable": Bad("lake: {properties: {a: 'x${PENSTOCK_NOWHERE}'}}\n", 3, 'lake.properties.a', 'the environment variable PENSTOCK_NOWHERE is not set; set it for Airflow and for the command line', False),
    "half_a_variable": Bad("landing: {uri: '${PENSTOCK_HOME:-/tmp}/x'}\n", 3, 'landing.uri', 'expected a variable as ${NAME}, letters, digits and _; write $${ for the text ${ itself', True),
    "alias_bomb": Bad(BOMB, 4, None, 'cannot be read as YAML: an alias (*name); write the value out', True),
    "merge_key": Bad('capture: {<<: {time_budget: 5m}}\n', 3, 'capture.<<', 'expected keys, got a merge (<<); write the values out', False),
    "key_twice_in_a_list": Bad('health: {drop: {foreign: [{name: a, name: b, inactive: 1d, retained: 1GiB}]}}\n', 3, 'health.drop.foreign.0.name', 'expected every key once, got it again; keep one of them', False),
    "impossible_date": Bad('version: 2026-13-45\n', 3, None, 'cannot be read as YAML: a number or date that does not exist; put a text in quotes', None),
    "endless_levels": Bad(f"lake: {'[' * 5000}\n", 3, None, 'cannot be read as YAML: too many brackets or keys inside each other, at most 20 levels are read', None),
    "two_documents": Bad('---\nname: other\n', 3, None, 'cannot be read as YAML: found another document; one file is one pipeline: give each a file of its own', None),
    "control_character": Bad('source: {skip_origins: ["a\\0b"]}\n', 3, 'source.skip_origins.0', 'expected text, got a character that no program can store (U+0000 or half of a surrogate)', False),
    "script_as_address": Bad("health: {runbooks: 'javascript:alert(1)'}\n", 3, 'health.runbooks', "expected an address such as https://wiki.example.com/penstock, got 'javascript:alert(1)'", True),
    "template_without_table": Bad("lake: {target: '{namespace}'}\n", 3, 'lake.target', "expected names joined by dots that hold {table}, and may hold {namespace} and {schema}, got '{namespace}'", True),
    "property_is_no_number": Bad('lake: {properties: {write.target-file-size-bytes: big}}\n', 3, 'lake.properties.write.target-file-size-bytes', 'expected a whole number in quotes, got a text', False),
    "property_without_vectors": Bad('lake: {properties: {format-version: "2"}}\n', 3, 'lake.properties.format-version', 'expected 3, which has deletion vectors, got 2', False),
    "unknown_key_in_a_section": Bad('capture:\n  max_wal_byte: 1\n', 4, 'capture.max_wal_byte', "unknown key; did you mean 'max_wal_bytes'?", True),
    "key_of_another_section": Bad('capture:\n  retention: 1d\n', 4, 'capture.retention', 'unknown key; did you mean landing.retention?', True),
    "key_unlike_any": Bad('ledger:\n  zzz: 1\n', 4, 'ledger.zzz', 'unknown key; expected one of connection', True),
    "size_of_words": Bad('capture: {max_wal_bytes: lots}\n', 3, 'capture.max_wal_bytes', f"{SIZE}, got 'lots'", True),
    "size_of_an_unknown_unit": Bad('copy:\n  range_bytes: 3 XB\n', 4, 'copy.range_bytes', f"{SIZE}, got '3 XB'", True),
    "size_of_nothing": Bad('capture: {max_wal_bytes: 0}\n', 3, 'capture.max_wal_bytes', f'{SIZE}, more than 0, got 0', True),
    "size_too_small": Bad('capture: {work_mem: 1kB}\n', 3, 'capture.work_mem', f"{SIZE}, 64.0 KiB at least, got '1kB'", False),
    "size_too_large": Bad('capture: {batch_bytes: 4GiB}\n', 3, 'capture.batch_bytes', f"{SIZE}, 1.0 GiB at most, got '4GiB'", False),
    "span_below_zero": Bad('capture: {time_budget: -5}\n', 3, 'capture.time_budget', f'{SPAN}, more than 0, got -5', True),
    "span_of_words": Bad('capture: {time_budget: 5 minutes}\n', 3, 'capture.time_budget', f"{SPAN}, got '5 minutes'", True),
    "span_with_a_point": Bad('merge: {linger: 1.5h}\n', 3, 'merge.linger', f"{SPAN}, got '1.5h'", True),
    "span_too_short": Bad('maintain: {orphans: 1h}\n', 3, 'maintain.orphans', f"{SPAN}, 1 d at least, got '1h'", False),
    "number_of_words": Bad('copy: {parallel: many}\n', 3, 'copy.parallel', "expected a whole number from 1 to 1000, got 'many'", True),
    "number_with_a_point": Bad('health: {watch: {free_slots: 1.5}}\n', 3, 'health.watch.free_slots', 'expected a whole number from 1 to 2147483647, got 1.5', True),
    "part_beyond_the_whole": Bad('maintain: {deleted_share: 2}\n', 3, 'maintain.deleted_share', 'expected a part of the whole, more than 0 and at most 1, such as 0.5, got 2', True),
    "hysteresis_of_all": Bad('health: {hysteresis: 1}\n', 3, 'health.hysteresis', 'expected a number from 0 to less than 1, such as 0.1, got 1', True),
    "warn_above_critical": Bad('health:\n  warn:\n    share: 0.9\n', 5, 'health.warn.share', 'expected at most health.critical.share, which is 0.5, got 0.9', False),
    "share_of_nothing": Bad('verify: {share: 1/0}\n', 3, 'verify.share', "expected a share 1/N such as 1/10, N from 1 to 9999, got '1/0'", True),
    "share_in_percent": Bad('verify: {share: 10%}\n', 3, 'verify.share', "expected a share 1/N such as 1/10, N from 1 to 9999, got '10%'", True),
    "neither_true_nor_false": Bad('source: {adopt: perhaps}\n', 3, 'source.adopt', "expected true or false, got 'perhaps'", True),
    "choice_that_does_not_exist": Bad('source: {origin: some}\n', 3, 'source.origin', "expected any or none, got 'some'", True),
    "kind_of_change_that_does_not_exist": Bad('source:\n  publish:\n    - insert\n    - upsert\n', 6, 'source.publish.1', "expected insert, update, delete or truncate, got 'upsert'", True),
    "empty_list": Bad('source: {publish: []}\n', 3, 'source.publish', 'expected one entry at least, got nothing in it', True),
    "text_for_a_list": Bad('verify: {tables: public.orders}\n', 3, 'verify.tables', "expected a list, such as [a, b], got 'public.orders'", True),
    "list_for_a_map": Bad('spark:\n  conf: [a]\n', 4, 'spark.conf', 'expected keys with values, such as {key: value}, got a list', True),
    "empty_section": Bad('capture:\n', 3, 'capture', 'expected keys of this section, such as schedule, max_wal_bytes, window_seconds, got nothing; leave the section out for its defaults', True),
    "text_for_a_section": Bad('landing: /somewhere\n', 3, 'landing', "expected keys of this section, such as uri, options, retention, got '/somewhere'; leave the section out for its defaults", True),
    "name_with_capitals": Bad('source: {slot: Mixed-Case}\n', 3, 'source.slot', "expected a name of a-z, digits and _, a letter first, at most 48 characters, such as shop, got 'Mixed-Case'", True),
    "pattern_without_schema": Bad('verify: {tables: [orders]}\n', 3, 'verify.tables.0', f'{PATTERN}, got \'orders\'; {QUOTED}', True),
    "pattern_of_three_parts": Bad('changelog: {tables: {include: [shop.public.orders]}}\n', 3, 'changelog.tables.include.0', f'{PATTERN}, got \'shop.public.orders\'; {QUOTED}', True),
    "lsn_of_words": Bad('merge:\n  skip_transactions: [soon]\n', 4, 'merge.skip_transactions.0', "expected an LSN in quotes, such as '16/B374D848', got 'soon'", True),
    "lsn_without_quotes": Bad('merge:\n  skip_transactions:\n    - 16/B3\n    - 99\n', 6, 'merge.skip_transactions.1', 'expected a text, got 99; put it in quotes', True),
    "unknown_store": Bad('landing: {uri: gs://bucket/x}\n', 3, 'landing.uri', f"expected one of the stores that exist: {STORES}, got 'gs://bucket/x'", True),
    "store_without_bucket": Bad("landing: {uri: 's3:///x'}\n", 3, 'landing.uri', "expected a bucket, as s3://bucket/prefix, got 's3:///x'", True),
    "unknown_option_of_a_store": Bad('landing: {uri: s3://b/x, options: {regoin: eu}}\n', 3, 'landing.options.regoin', "unknown option of an s3:// store; did you mean 'region'?", True),
    "option_of_a_folder": Bad('landing: {uri: /srv/x, options: {region: eu}}\n', 3, 'landing.options.region', 'unknown option; a folder takes none', False),
    "option_of_words": Bad('landing: {uri: s3://b/x, options: {connect_timeout: soon}}\n', 3, 'landing.options.connect_timeout', "expected a number of seconds, in quotes, such as '10', got a text", False),
    "option_without_quotes": Bad('landing: {uri: s3://b/x, options: {connect_timeout: 10}}\n', 3, 'landing.options.connect_timeout', 'expected a text, got a number; put it in quotes', True),
    "option_scheme": Bad('landing: {uri: s3://b/x, options: {scheme: ftp}}\n', 3, 'landing.options.scheme', 'expected http or https, got a text', False),
    "address_as_connection": Bad("source: {connection: 'postgres://me:hunter2@db/shop'}\n", 3, 'source.connection', 'expected the id of an Airflow connection, letters, digits and _ . -, such as penstock_source, got an address', True),
    "address_as_channel": Bad("health: {warn: {channels: ['https://hooks.example.com/hunter2']}}\n", 3, 'health.warn.channels.0', 'expected the id of an Airflow connection with apprise URLs, such as team_chat, or <id>:<tag>, got a text', True),
    "rule_without_limits": Bad("health: {drop: {foreign: [{name: 'test_*', inactive: 1d}]}}\n", 3, 'health.drop.foreign.0.retained', 'expected a value: this key has no default', True),
    "policy_that_does_not_exist": Bad('lake: {on_dropped_column: hide}\n', 3, 'lake.on_dropped_column', "expected keep or drop, got 'hide'", True),
    "another_version": Bad('version: 2\n', 3, 'version', 'expected 1, got 2', True),
    "number_as_key": Bad('1: x\n', 3, '1', 'no key, because it is no text; put it in quotes', True),
    "tab": Bad('capture:\n\ttime_budget: 5m\n', 4, None, "cannot be read as YAML: found character '\\t' that cannot start any token; indent with blanks, not with tabs", None),
    "preset_without_quotes": Bad('capture: {schedule: @daily}\n', 3, None, "cannot be read as YAML: found character '@' that cannot start any token; put the text in quotes, such as '@daily'", None),
    "star_without_quotes": Bad('verify: {tables: [*.*]}\n', 3, None, "cannot be read as YAML: expected alphabetic or numeric character, but found '.'; put a text that begins with * or & in quotes, such as '*.*'", None),
    "colon_without_quotes": Bad('source:\n  connection: a: b\n', 4, None, 'cannot be read as YAML: mapping values are not allowed here; put a text with a colon in quotes, and indent the keys of one section alike', None),
    "open_bracket": Bad('merge: [\n', 4, None, "cannot be read as YAML: expected the node content, but found '<stream end>'", None),
    "tag": Bad('lake: !!python/object:os.system {}\n', 3, None, "cannot be read as YAML: could not determine a constructor for the tag 'tag:yaml.org,2002:python/object:os.system'; tags (!name) are not read", None),
}
# fmt: on

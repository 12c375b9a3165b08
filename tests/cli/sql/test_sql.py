"""`kwire sql`: output, files, wrong usage, the prompt in a terminal."""

from __future__ import annotations

import json
import os
import pty
import re
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.cli.crafted import segment
from tests.records.building import batch, record
from tests.rewriting_proxy import RewritingProxy
from tests.sql.test_dataset import produce
from tests.sql.test_failures import dying

from kwire.broker import Broker

pytest.importorskip("duckdb")

COUNTS = 'SELECT partition, count(*) AS n, max("offset") AS last FROM orders GROUP BY ALL ORDER BY partition'


def test_a_query_prints_a_table(kafka_logs: dict[str, Path], kwire: Callable) -> None:
    result = kwire("sql", kafka_logs["modern"] / "data", COUNTS)
    assert (result.code, result.out.split()) == (
        0,
        ["partition", "n", "last", "0", "7015", "7014", "1", "6897", "6896", "2", "6089", "6088"],
    )


def test_formats(kafka_logs: dict[str, Path], kwire: Callable, tmp_path: Path) -> None:
    data = kafka_logs["modern"] / "data"
    rows = [(0, 7015, 7014), (1, 6897, 6896), (2, 6089, 6088)]
    expected = [dict(zip(("partition", "n", "last"), row, strict=True)) for row in rows]
    assert json.loads(kwire("sql", data, COUNTS, "--format", "json").out) == expected
    lines = kwire("sql", data, COUNTS, "--format", "jsonl").out.splitlines()
    assert [json.loads(line) for line in lines] == expected
    csv = kwire("sql", data, COUNTS, "--format", "csv").out
    assert csv == "partition,n,last\n0,7015,7014\n1,6897,6896\n2,6089,6088\n"
    assert kwire("sql", data, COUNTS, "--format", "parquet", "-o", tmp_path / "counts.parquet").code == 0
    assert pq.read_table(tmp_path / "counts.parquet").to_pylist() == expected
    kwire("sql", data, COUNTS, "--format", "csv", "-o", tmp_path / "counts.csv")
    assert (tmp_path / "counts.csv").read_text() == csv


def test_values_as_text_and_bytes(kafka_logs: dict[str, Path], kwire: Callable) -> None:
    data = kafka_logs["modern"] / "data"
    query = 'SELECT value FROM orders WHERE partition = 0 AND "offset" = 0'
    raw = json.loads(kwire("sql", data, query, "--format", "jsonl").out)
    text = json.loads(kwire("sql", data, query, "--format", "jsonl", "--value", "text").out)
    assert raw == text
    assert json.loads(text["value"])["id"] == 0
    city = "SELECT (value::JSON)->>'city' AS city FROM orders WHERE partition = 0 AND \"offset\" = 0"
    assert json.loads(kwire("sql", data, city, "--format", "jsonl", "--value", "text").out) == {"city": "Αθήνα"}


def test_json_values_with_an_inferred_type(kafka_logs: dict[str, Path], kwire: Callable) -> None:
    data = kafka_logs["modern"] / "data"
    query = 'SELECT key, value.id, value.city, value_error FROM orders WHERE partition = 0 AND "offset" = 0'
    result = kwire("sql", data, query, "--format", "jsonl", "--value", "json")
    row = json.loads(result.out)
    assert (row["id"], row["city"], row["value_error"]) == (0, "Αθήνα", None)
    assert isinstance(row["key"], str | None)
    assert result.err.startswith("kwire: topic 'orders': --schema 'id BIGINT, city STRING")
    assert result.err.count("\n") == 1
    schema = shlex.split(result.err)[-1]
    again = kwire("sql", data, query, "--format", "jsonl", "--value", "json", "--schema", schema)
    assert (again.out, again.err) == (result.out, "")


def test_json_values_with_a_schema(kafka_logs: dict[str, Path], kwire: Callable, tmp_path: Path) -> None:
    data = kafka_logs["modern"] / "data"
    file = tmp_path / "orders.ddl"
    file.write_text("id TINYINT,\n  city STRING\n")
    query = "SELECT count(*) AS n, count(value) AS good, max(value.id) AS top, count(value_error) AS bad FROM orders"
    row = json.loads(kwire("sql", data, query, "--format", "jsonl", "--value", "json", "--schema", file).out)
    assert row["good"] + row["bad"] <= row["n"]
    assert (row["good"] >= 100, row["bad"] > 10_000, row["top"]) == (True, True, 127)
    error = "SELECT value_error AS e FROM orders WHERE value_error IS NOT NULL AND value IS NULL LIMIT 1"
    shown = json.loads(kwire("sql", data, error, "--format", "jsonl", "--value", "json", "--schema", file).out)
    assert "id: out of the range of 8 bits" in shown["e"]


def test_topics_that_are_not_json_stay_bytes(kafka_logs: dict[str, Path], kwire: Callable) -> None:
    result = kwire("sql", kafka_logs["modern"] / "data", "FROM __consumer_offsets LIMIT 1", "--value", "json")
    assert result.code == 0
    assert "topic '__consumer_offsets': no JSON object with properties among" in result.err
    assert "its values stay bytes" in result.err


def test_attached_sources(kafka_logs: dict[str, Path], kwire: Callable) -> None:
    data = kafka_logs["modern"] / "data"
    query = 'SELECT count(*) AS n FROM a.orders ANTI JOIN b.orders USING (partition, "offset")'
    result = kwire("sql", "--attach", f"a={data}", "--attach", f"b={data}", query, "--format", "jsonl")
    assert (result.code, result.out) == (0, '{"n":0}\n')


def test_times_after_the_year_9999_and_in_lists_are_text(kwire: Callable, tmp_path: Path) -> None:
    segment(tmp_path / "late-0", batch(record(0, 0, None, b"v"), count=1, base_timestamp=253_402_300_800_000))
    query = "SELECT timestamp AS t, [timestamp] AS many, {'a': timestamp} AS one FROM late"
    late = "10000-01-01 00:00:00.000000Z"
    result = kwire("sql", tmp_path, query, "--format", "json")
    assert json.loads(result.out) == [{"t": late, "many": [late], "one": {"a": late}}]
    assert late in kwire("sql", tmp_path, query).out


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("timestamp '57742-03-07 08:53:20'", "57742-03-07 08:53:20.000000"),
        ("timestamptz '294247-01-10 04:00:54.775806+00'", "294247-01-10 04:00:54.775806Z"),
        ("timestamp '290309-12-22 (BC) 00:00:00'", "-290308-12-22 00:00:00.000000"),
        ("timestamp '0044-03-15 (BC) 12:00:00'", "-0043-03-15 12:00:00.000000"),
        ("timestamp_s '1970-01-01 01:02:03'", "1970-01-01 01:02:03"),
        ("timestamp_ns '2020-01-01 00:00:00.023456789'", "2020-01-01 00:00:00.023456789"),
        ("date '5881580-07-10'", "5881580-07-10"),
        ("array_value(date '0001-01-01')", ["0001-01-01"]),
        ("map{date '20000-02-29': 1}", [["20000-02-29", 1]]),
    ],
)
def test_times_have_their_year(value: str, text: object, kwire: Callable, tmp_path: Path) -> None:
    assert json.loads(kwire("sql", _one_record(tmp_path), f"SELECT {value} AS t", "--format", "jsonl").out) == {
        "t": text
    }


def test_times_in_another_zone(kwire: Callable, tmp_path: Path) -> None:
    query = "SET timezone = 'Europe/Berlin'; SELECT unnest([timestamptz '{}', '{}', '{}', '{}']) AS t"
    times = ("2026-07-01 00:00:00+00", "20000-01-01 00:00:00+00", "9999-12-31 23:30:00+00", "1900-01-01 00:00:00+00")
    assert kwire("sql", _one_record(tmp_path), query.format(*times), "--format", "csv").out.splitlines()[-4:] == [
        "2026-07-01 02:00:00.000000+0200",
        "20000-01-01 01:00:00.000000+0100",
        "10000-01-01 00:30:00.000000+0100",
        "1900-01-01 01:00:00.000000+0100",
    ]
    result = kwire("sql", tmp_path, "SET timezone = 'PST'; SELECT timestamptz '2026-07-01 00:00:00+00'")
    assert (result.code, result.err) == (2, "kwire: the time zone 'PST' is unknown; SET timezone = 'UTC'\n")


def test_lists_of_nulls_without_a_type(kwire: Callable, tmp_path: Path) -> None:
    """DuckDB has such a type for Avro's arrays of null."""
    arguments = _one_avro_record(tmp_path, {"type": "array", "items": "null"}, b"\4\0")
    result = kwire(*arguments, "SELECT value FROM late", "--format", "jsonl")
    assert (result.code, result.out) == (0, '{"value":{"id":1,"d":[null,null]}}\n')


def test_decimals_above_38_digits_are_text(kwire: Callable, tmp_path: Path) -> None:
    wide = {"type": "bytes", "logicalType": "decimal", "precision": 64, "scale": 2, "name": "w"}
    nested = {"type": "array", "items": {"type": "map", "values": ["null", wide]}}
    arguments = _one_avro_record(tmp_path, nested, b"\2\4\2a\2\4\4\xd2\2b\0\0\0")
    value = {"id": 1, "d": [[["a", "12.34"], ["b", None]]]}
    for query, row in [
        ("SELECT value, value_error FROM late", {"value": value, "value_error": None}),
        ("SELECT count(*) AS n FROM late", {"n": 1}),
        ("SELECT value.d[1]['a']::DECIMAL(38, 2) AS d FROM late", {"d": "12.34"}),
    ]:
        result = kwire(*arguments, query, "--format", "jsonl")
        assert (result.code, result.err) == (0, "")
        assert json.loads(result.out) == row


def test_maps_have_the_last_of_equal_keys(kwire: Callable, tmp_path: Path) -> None:
    """DuckDB refuses two; Avro does not forbid them."""
    nested = {"type": "array", "items": {"type": "map", "values": {"type": "map", "values": "int"}}}
    body = b"\4" + b"\4\2a\0\2a\6\2x\2\2y\4\2x\6\0\0" + b"\2\2a\0\0" + b"\0"
    arguments = _one_avro_record(tmp_path, nested, body)
    result = kwire(*arguments, "SELECT value.d, value_error AS e FROM late", "--format", "jsonl")
    assert (result.code, result.err) == (0, "")
    assert json.loads(result.out) == {"d": [[["a", [["y", 2], ["x", 3]]]], [["a", []]]], "e": None}


def test_values_whose_schema_has_no_type_stay_bytes(kwire: Callable, tmp_path: Path) -> None:
    node = {"type": "record", "name": "Node", "fields": [{"name": "next", "type": ["null", "Node"]}]}
    arguments = _one_avro_record(tmp_path, node, b"\0")
    registry = tmp_path / "registry"
    (registry / "late-key.1.2.avsc").write_text('"long"')
    result = kwire(*arguments, "SELECT key, octet_length(value) AS n FROM late", "--format", "jsonl")
    assert (result.code, result.out) == (0, '{"key":null,"n":7}\n')
    assert result.err == (
        "kwire: topic 'late': schema id 1 of 'late-value' version 1: d.next: record Node contains itself; Arrow has no "
        "such type; its values stay bytes\n"
    )
    (registry / "late-value.1.1.avsc").write_text('"int"')
    (registry / "late-value.2.3.avsc").write_text('"string"')
    result = kwire(*arguments, "SELECT count(*) AS n FROM late", "--format", "jsonl")
    assert (result.code, result.out) == (0, '{"n":1}\n')
    assert "topic 'late': int32 in one schema and string in another have no common type; its values" in result.err


def test_intervals_are_text(kwire: Callable, tmp_path: Path) -> None:
    intervals = [
        "14 months", "-13 months 1 day", "-3 days", "-1 day", "1 day 02:00:03.5", "-90 minutes", "400 hours", "0 days",
        "1 microsecond", "-1 year -1 microsecond",
    ]  # fmt: skip
    values = ", ".join(f"(INTERVAL '{each}')" for each in intervals)
    query = f"SELECT i, i::VARCHAR AS text, [{{'i': i}}] AS nested FROM (VALUES {values}) v(i)"
    result = kwire("sql", _one_record(tmp_path), query, "--format", "jsonl")
    for line in map(json.loads, result.out.splitlines()):
        assert line["i"] == line["text"]
        assert line["nested"] == [{"i": line["text"]}]
    assert len(result.out.splitlines()) == len(intervals)


@pytest.mark.parametrize(
    "value", ["INTERVAL 1 DAY", "union_value(n := 1)", "{'a': INTERVAL 1 DAY}"], ids=["interval", "union", "nested"]
)
def test_types_that_parquet_does_not_have_are_an_error(value: str, kwire: Callable, tmp_path: Path) -> None:
    file = tmp_path / "t.parquet"
    result = kwire("sql", _one_record(tmp_path), f"SELECT {value} AS v", "--format", "parquet", "-o", file)
    assert result.code == 2
    assert result.err.startswith("kwire: --format parquet: ")
    assert "cast the column" in result.err
    assert not file.exists()


def test_statements_without_a_result_print_nothing(kwire: Callable, tmp_path: Path) -> None:
    """DuckDB has the columns Success and Count for them, which came before the rows that were asked for."""
    data = _one_record(tmp_path / "data")
    before = "SET memory_limit = '1GB'; CREATE TEMP TABLE t AS SELECT 1 AS n; INSERT INTO t VALUES (2); "
    query = f'{before} SELECT count(*) AS "Count" FROM t'
    assert kwire("sql", data, query, "--format", "csv").out == "Count\n2\n"
    assert json.loads(kwire("sql", data, query, "--format", "json").out) == [{"Count": 2}]
    assert kwire("sql", data, f"{before} INSERT INTO t VALUES (3) RETURNING n", "--format", "csv").out == "n\n3\n"
    file = tmp_path / "f.csv"
    result = kwire("sql", data, "SELECT 1; SET memory_limit = '1GB'", "-o", file)
    assert (result.code, result.err) == (2, f"kwire: -o {file}: the last statement has no result\n")
    assert not file.exists()


def test_a_type_without_values_in_python(kwire: Callable, tmp_path: Path) -> None:
    query = "SELECT union_value(t := timestamp '20000-01-01') AS u"
    result = kwire("sql", _one_record(tmp_path), query)
    assert result.code == 2
    assert "column 'u': sparse_union<t: timestamp[us]=0> cannot be shown" in result.err


def _one_avro_record(root: Path, kind: object, body: bytes) -> list[str | Path]:
    """Write one record with the fields id, 1, and d; return arguments, less the query, to query the topic `late`."""
    registry = root / "registry"
    registry.mkdir()
    fields = [{"name": "id", "type": "long"}, {"name": "d", "type": kind}]
    schema = {"type": "record", "name": "T", "fields": fields}
    (registry / "late-value.1.1.avsc").write_text(json.dumps(schema))
    return ["sql", "--registry", registry, _one_record(root / "data", b"\0\0\0\0\1\2" + body)]


def _one_record(root: Path, value: bytes = b"v") -> Path:
    """Return a data directory with one record in the topic `late`."""
    segment(root / "late-0", batch(record(0, 0, None, value), count=1))
    return root


def test_an_empty_result_has_its_headings(kafka_logs: dict[str, Path], kwire: Callable) -> None:
    assert kwire("sql", kafka_logs["modern"] / "data", f"{COUNTS} LIMIT 0").out == "partition  n  last\n"


def test_explain_is_readable(kafka_logs: dict[str, Path], kwire: Callable) -> None:
    out = kwire("sql", kafka_logs["modern"] / "data", f"EXPLAIN {COUNTS}").out
    assert "count_star()" in out
    assert "\\x0a" not in out
    assert len(out.splitlines()) > 10


def test_a_file_that_cannot_be_written_is_named_and_not_left(kafka_logs: dict[str, Path], kwire: Callable) -> None:
    result = kwire("sql", kafka_logs["modern"] / "data", COUNTS, "--format", "csv", "-o", "/dev/full")
    assert (result.code, result.err) == (2, "kwire: /dev/full: cannot be written: No space left on device\n")


def test_a_signal_ends_a_long_query(kafka_logs: dict[str, Path]) -> None:
    command = [sys.executable, "-m", "kwire.cli", "sql", str(kafka_logs["modern"] / "data")]
    query = "SELECT 1 AS began; SELECT count(*) FROM orders a, orders b, orders c"
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with subprocess.Popen(
        [*command, query], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=buffered
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "began\n"
        process.send_signal(signal.SIGTERM)
        errors = process.stderr.read()
        assert process.wait(60) == 143
    assert errors.startswith("kwire: terminated: ")
    assert errors.endswith(" records had been read\n"), errors


def test_an_error_of_a_process_is_one_line(tmp_path: Path) -> None:
    """DuckDB would list at exit what an error in the middle of a scan still refers to."""
    segment(tmp_path / "t-0", batch(record(0, 0, None, b"v"), count=1)[:-1] + b"\1")
    command = [sys.executable, "-m", "kwire.cli", "sql", str(tmp_path), "SELECT * FROM t"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "stored CRC" in done.stderr
    assert done.stderr.count("\n") == 1, done.stderr


def test_a_reader_that_goes_away(kafka_logs: dict[str, Path]) -> None:
    """DuckDB would list at exit what the error still refers to."""
    command = [sys.executable, "-m", "kwire.cli", "sql", str(kafka_logs["modern"] / "data")]
    query = ['SELECT "offset" FROM orders a, range(100)', "--format", "csv"]
    with subprocess.Popen([*command, *query], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "offset\n"
        process.stdout.close()
        assert (process.stderr.read(), process.wait(60)) == ("", 141)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "SOURCE: missing"),
        (("{data}",), "QUERY: missing; the prompt needs a terminal"),
        (("{data}", " ; "), "QUERY: empty"),
        (("{data}", "SELECT", "--attach", "x"), "--attach: expected NAME=SOURCE, got 'x'"),
        (("{data}", "SELECT 1", "--value", "text", "--registry", "{data}"), "mutually exclusive"),
        (("{data}", "SELECT 1", "--schema", "id INT"), "--schema: requires --value json"),
        (("{data}", "SELECT 1", "--value", "json", "--schema", "id INTT"), "--schema: DDL: the type 'INTT' is not"),
        (("{data}", "SELECT 1", "--value", "json", "--schema", "x BINARY"), "--schema: 'x': binary cannot be decoded"),
        (("{data}/none", "SELECT 1"), "no such file or directory"),
        (("{data}", "SELECT 1", "--config", "client.id=x"), "--config requires a path that begins with kafka://"),
        (("{data}", "SELECT * FROM ordrs"), "did you mean 'orders'?"),
    ],
)
def test_wrong_usage(arguments: tuple[str, ...], message: str, kafka_logs: dict[str, Path], kwire: Callable) -> None:
    data = str(kafka_logs["modern"] / "data")
    result = kwire("sql", *(each.replace("{data}", data) for each in arguments))
    assert result.code == 2
    assert message in result.err
    assert result.err.count("\n") == 1


def read_terminal(main: int) -> str:
    shown = b""
    while True:
        try:
            shown += os.read(main, 65536)
        except OSError:  # the other side is closed
            return shown.decode()


@pytest.mark.slow
def test_a_long_query_shows_its_progress_on_a_terminal(kafka_logs: dict[str, Path]) -> None:
    main, side = pty.openpty()
    data = str(kafka_logs["modern"] / "data")
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    pairs = "orders a, orders b, range(100000) c(n)"  # takes hours
    query = f'SELECT count(*) AS n FROM {pairs} WHERE hash(a."offset", b."offset", c.n) = 7'
    process = subprocess.Popen(
        [sys.executable, "-m", "kwire.cli", "sql", data, query],
        stdout=subprocess.PIPE,
        stderr=side,
        env=environment,
        start_new_session=True,
    )
    os.close(side)
    shown = ""
    while "records" not in shown:
        shown += os.read(main, 65536).decode()
    process.send_signal(signal.SIGINT)
    shown += read_terminal(main)
    assert process.wait(60) == 130
    assert "Reading" in shown
    assert "records" in shown
    assert shown.rstrip().endswith(" records had been read")
    with process:
        assert process.stdout is not None
        assert process.stdout.read() == b""


def test_the_prompt_in_a_terminal(kafka_logs: dict[str, Path], tmp_path: Path) -> None:
    main, side = pty.openpty()
    environment = {**os.environ, "TERM": "dumb", "XDG_STATE_HOME": str(tmp_path), "COLUMNS": "80"}
    process = subprocess.Popen(
        [sys.executable, "-m", "kwire.cli", "sql", str(kafka_logs["modern"] / "data")],
        stdin=side,
        stdout=side,
        stderr=side,
        env=environment,
        start_new_session=True,
    )
    os.close(side)
    view = b'CREATE VIEW few AS SELECT "offset" AS place FROM orders WHERE "offset" < 5;\n\\d\n\\d few\n'
    os.write(main, view + b"SELECT count(*) AS n\nFROM orders;\nSELECT * FROM ordrs;\n\\d orders\n\\x\n\\q\n")
    text = read_terminal(main)
    assert process.wait(60) == 0
    assert re.search(r"^few\r?$", text, re.MULTILINE)
    assert re.search(r"^place +BIGINT", text, re.MULTILINE)
    assert "20001" in text
    assert "did you mean 'orders'" in text
    assert "timestampType" in text
    assert "unknown command '\\x'" in text
    assert "FROM orders;" in (tmp_path / "kwire" / "sql_history").read_text()


def test_configs_are_those_of_the_clusters_among_the_sources(kafka_logs: dict[str, Path], kwire: Callable) -> None:
    """Beside a cluster that needs them, a directory was refused."""
    with Broker() as broker:
        broker.create_topic("events")
        attached = (
            "--attach",
            f"a={kafka_logs['modern'] / 'data'}",
            "--attach",
            f"b=kafka://{broker.bootstrap_servers}",
        )
        query = "SELECT count(*) AS n FROM a.orders UNION ALL SELECT count(*) FROM b.events"
        result = kwire("sql", *attached, query, "--format", "csv", "--config", "client.id=tester")
        assert (result.code, result.out) == (0, "n\n20001\n0\n")
        assert {each.client_id for each in broker.requests.of("Metadata")} == {"tester"}


def test_a_broker_that_dies_leaves_no_file(kwire: Callable, tmp_path: Path) -> None:
    config = ("--config", "default.api.timeout.ms=500", "--config", "max.partition.fetch.bytes=1")
    with Broker() as broker, RewritingProxy(("127.0.0.1", broker.port)) as proxy:
        broker.create_topic("events", 2)
        produce(broker, 10)
        dying(broker, proxy, 1)
        output = ("--format", "csv", "-o", tmp_path / "events.csv")
        result = kwire("sql", f"kafka://{proxy.address}", "FROM events", *output, *config)
    assert result.code == 1
    assert proxy.address in result.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_registry_that_is_down_is_an_error(kafka_logs: dict[str, Path], kwire: Callable) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
        result = kwire("sql", kafka_logs["modern"] / "data", "SELECT value FROM orders", "--registry", url)
    assert result.code == 1
    assert result.out == ""
    assert url.removeprefix("http://") in result.err
    assert result.err.count("\n") == 1

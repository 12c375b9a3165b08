"""`kwire log` with kafka:// URLs, beside the same commands on the broker's directory."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from tests.broker.still import StillBroker
from tests.waiting import HANG_S

from kwire.broker import Broker
from kwire.client import Client, Producer
from kwire.records import ColumnWriter

Kwire = Callable[..., Any]


@pytest.fixture(scope="module")
def served(kafka_logs: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """The URL of a broker on a copy of real Kafka's log directory, and the directory."""
    data = tmp_path_factory.mktemp("served") / "data"
    shutil.copytree(kafka_logs["modern"] / "data", data)
    with StillBroker(data_dir=data) as broker:
        yield f"kafka://{broker.bootstrap_servers}", data


def rows(output: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(output)
    return found


def without(row: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in names}


def test_ls_has_the_columns_of_a_directory_and_no_segments(served: tuple[str, Path], kwire: Kwire) -> None:
    url, data = served
    arguments = ("--topic", "orders*", "--topic", "txn", "--topic", "empty", "--wide", "--format", "json")
    mine, theirs = (kwire("log", "ls", path, *arguments) for path in (url, data))
    assert (mine.code, mine.err) == (0, "")
    unknown = ("segments", "high_watermark", "last_timestamp")
    assert [without(row, *unknown) for row in rows(mine.out)] == [without(row, *unknown) for row in rows(theirs.out)]
    assert all(row["segments"] is None and row["high_watermark"] == row["log_end_offset"] for row in rows(mine.out))
    assert "  -  " in kwire("log", "ls", f"{url}/orders", "--topics").out


def test_dump_prints_the_batches_and_records_of_a_directory_without_positions(
    served: tuple[str, Path], kwire: Kwire
) -> None:
    url, data = served
    for arguments in ((), ("--deep",), ("--deep", "--offsets", "690:700"), ("--since", "1760000010000")):
        mine, theirs = (
            kwire("log", "dump", path, "--format", "json", *arguments) for path in (f"{url}/txn-0", data / "txn-0")
        )
        assert mine.code == 0
        names = ("file", "position")
        assert [without(row, *names) for row in rows(mine.out)] == [without(row, *names) for row in rows(theirs.out)]
        assert all(row["position"] is None and row["file"] == f"{url}/txn-0" for row in rows(mine.out))


def test_dump_prints_the_lines_of_kafkas_tool_with_unknown_positions(served: tuple[str, Path], kwire: Kwire) -> None:
    url, _ = served
    out = kwire("log", "dump", f"{url}/txn-0", "--like-kafka", "--offsets", "700").out.splitlines()
    assert out[0] == f"Dumping {url}/txn-0"
    assert "baseOffset: 700" in out[1]
    assert " position: -1 " in out[1]
    assert "Starting offset" not in "".join(out)


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_export_writes_the_records_of_a_directory(
    served: tuple[str, Path], kwire: Kwire, tmp_path: Path, isolation: str
) -> None:
    url, data = served
    for name, source in (("mine.parquet", url), ("theirs.parquet", data)):
        result = kwire("log", "export", source, "--topic", "txn", "--isolation", isolation, "-o", tmp_path / name)
        assert result.code == 0
    mine, theirs = (parquet.read_table(tmp_path / name) for name in ("mine.parquet", "theirs.parquet"))
    assert mine.equals(theirs)


def test_report_counts_the_records_of_a_directory(served: tuple[str, Path], kwire: Kwire, tmp_path: Path) -> None:
    url, data = served
    pages = []
    for path in (url, data):
        assert kwire("log", "report", path, "--topic", "txn", "--topic", "comp*", "-o", tmp_path / "x.html").code == 0
        page = (tmp_path / "x.html").read_text()
        pages.append(page[page.index("</header>") if "</header>" in page else page.index("<h2") :])
    assert pages[0] == pages[1]


def test_verify_checks_the_batches_and_says_what_it_could_not_check(served: tuple[str, Path], kwire: Kwire) -> None:
    url, _ = served
    result = kwire("log", "verify", f"{url}/txn")
    assert result.code == 0
    assert result.out.startswith("2 partitions, ")
    assert result.out.endswith("no damage\n")
    assert "segment" not in result.out
    assert "not checked: the other replicas, indexes," in result.err


def test_a_wrong_name_or_config_is_wrong_usage(served: tuple[str, Path], kwire: Kwire, tmp_path: Path) -> None:
    url, data = served
    for arguments, message in (
        (("log", "ls", f"{url}/nowhere"), "no topic 'nowhere'"),
        (("log", "ls", data, "-c", "client.id=x"), "--config requires a path that begins with kafka://"),
        (("log", "ls", url, "-c", "client.idd=x"), "unknown config 'client.idd' (did you mean 'client.id'?)"),
        (("log", "ls", url, "-c", "sasl.password=x"), "use --config-file"),
        (("log", "repair", url), "a cluster; this command needs a log directory"),
        (("log", "dump", data, "--follow"), "--follow requires one kafka:// path"),
        (("log", "dump", url, "--follow", "--format", "json"), "--format table or jsonl"),
    ):
        result = kwire(*arguments)
        assert (result.code, message in result.err) == (2, True), result.err


def test_a_broker_that_does_not_respond_is_an_error(kwire: Kwire) -> None:
    result = kwire("log", "ls", "kafka://127.0.0.1:1", "-c", "default.api.timeout.ms=300")
    assert result.code == 2
    assert "127.0.0.1:1: cannot connect: Connection refused" in result.err


def write(client: Client, topic: str, values: list[bytes]) -> None:
    producer = Producer(client)
    writer = ColumnWriter(**producer.fields(topic, 0))
    (piece,) = writer.write(pa.record_batch({"value": pa.array(values, pa.binary())}))
    producer.send(topic, 0, piece, len(values))


@pytest.mark.sampled
@pytest.mark.parametrize("form", ["table", "jsonl"])
def test_follow_prints_new_records_until_it_is_interrupted(form: str) -> None:
    """`dump --follow` in a process of its own, which Ctrl-C ends with 130."""
    from tests.client.test_cluster_logs import create

    with Broker() as broker, Client(broker.bootstrap_servers) as client:
        create(client, "tail")
        write(client, "tail", [b"first", b"second"])
        url = f"kafka://{broker.bootstrap_servers}/tail"
        command = [sys.executable, "-m", "kwire.cli", "log", "dump", url, "--follow", "--deep", "--format", form]
        with subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),  # shells ignore it in the background
        ) as process:
            assert process.stdout is not None
            try:
                lines = [process.stdout.readline() for _ in range(2 + (form == "table"))]
                assert "second" in lines[-1]
                write(client, "tail", [b"third"])
                assert "third" in process.stdout.readline()
                process.send_signal(signal.SIGINT)
                _, err = process.communicate(timeout=HANG_S)
            finally:
                process.kill()
        assert (process.returncode, err) == (130, "kwire: interrupted\n")

"""`kafka-capture`: rows equal the exchanges of kwire.capture."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kwire.capture import read_capture
from kwire.errors import LogError, Malformed, OptionError
from kwire.spark.capture.options import column_types, parse_options
from kwire.spark.capture.source import CaptureReader, read_file

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture(scope="module")
def folder(kafka_logs: dict[str, Path]) -> Path:
    return next(kafka_logs["wire"].rglob("k391.clean.pcap")).parent


def load(spark: SparkSession, path: Path, **options: Any) -> DataFrame:
    return spark.read.format("kafka-capture").options(**options).load(str(path))


@pytest.mark.slow
def test_rows_are_the_exchanges_of_every_file(spark: SparkSession, folder: Path) -> None:
    frame = load(spark, folder / "k*.clean.pcap")
    rows = [row.asDict() for row in frame.collect()]
    expected = {
        (str(path), each.client[1], each.correlation_id): each
        for path in sorted(folder.glob("k*.clean.pcap"))
        for each in read_capture(path)
    }
    assert len(rows) == len(expected)
    for row in rows:
        each = expected[row["file"], int(row["client"].rpartition(":")[2]), row["correlation_id"]]
        message = each.request_message()
        assert json.loads(row["request"]) == json.loads(json.dumps(message.to_json(version=each.api_version)))
        assert row["api"] == each.api_name
        assert row["latency_ms"] == (None if each.latency_ns is None else each.latency_ns / 1e6)
    assert frame.rdd.getNumPartitions() == 2


@pytest.mark.slow
def test_apis_clients_and_columns_narrow_the_read(spark: SparkSession, folder: Path) -> None:
    frame = load(spark, folder / "k391.clean.pcap", apis="produce,*Txn*", columns="api,request_bytes")
    assert frame.columns == ["api", "request_bytes"]
    transactional = {"AddPartitionsToTxn", "AddOffsetsToTxn", "EndTxn", "TxnOffsetCommit"}
    assert {row.api for row in frame.collect()} == {"Produce", *transactional}
    counted = frame.groupBy("api").count().collect()
    assert {row.api: row["count"] for row in counted}["Produce"] == 51


@pytest.mark.slow
def test_bodies_are_json_bytes_or_omitted(spark: SparkSession, folder: Path) -> None:
    path = folder / "k391.clean.pcap"
    assert "request" not in load(spark, path, bodies="none").columns
    rows = load(spark, path, bodies="bytes", apis="CreateTopics").collect()
    frames = {each.request.data for each in read_capture(path) if each.request and each.api_name == "CreateTopics"}
    assert {bytes(row.request) for row in rows} == frames


@pytest.mark.slow
def test_one_message_becomes_a_column_of_structs(spark: SparkSession, folder: Path) -> None:
    path = folder / "k391.clean.pcap"
    frame = load(spark, path, message="FetchRequest", bodies="none")
    assert frame.columns[-1] == "body"
    rows = frame.orderBy("connection", "correlation_id").select("api", "api_version", "body").collect()
    exchanges = sorted(read_capture(str(path)), key=lambda each: (each.connection, each.correlation_id or 0))
    assert len(rows) == len(exchanges)
    for row, each in zip(rows, exchanges, strict=True):
        assert (row.body is not None) == (each.api_name == "Fetch")
        if row.body:
            message = each.request_message()
            assert (row.body.max_wait_ms, row.body.min_bytes) == (message.max_wait_ms, message.min_bytes)
            fetched = [(t.topic_id, [p.fetch_offset for p in t.partitions]) for t in row.body.topics]
            assert [offsets for _, offsets in fetched] == [
                [p.fetch_offset for p in t.partitions] for t in message.topics
            ]
            assert all((topic_id is None) == (each.api_version < 13) for topic_id, _ in fetched)
    assert any(row.body for row in rows)


def bodies_of(path: str, message: str) -> list[Any]:
    options = parse_options({"path": path, "message": message, "columns": "body,correlation_id"})
    batches = list(read_file(path, options))
    assert all(batch.schema.names == ["body", "correlation_id"] for batch in batches)
    return [row["body"] for batch in batches for row in batch.to_pylist()]


@pytest.mark.parametrize("name", ["k391.clean.pcap", "k282.clean.pcap", "k391.gap.pcap"])
def test_responses_that_can_be_decoded_are_included(folder: Path, name: str) -> None:
    path = str(folder / name)
    exchanges = list(read_capture(path))
    for body, each in zip(bodies_of(path, "ApiVersionsResponse"), exchanges, strict=True):
        whole = each.api_name == "ApiVersions" and each.response is not None and each.response.is_whole
        found = each.response_message() if whole else None
        assert (body is None) == (found is None)
        if found is not None:
            assert [key["api_key"] for key in body["api_keys"]] == [key.api_key for key in found.api_keys]


def test_secrets_are_hidden_in_structs(folder: Path) -> None:
    path = str(folder / "k391.clean.pcap")
    (changed,) = (body for body in bodies_of(path, "AlterUserScramCredentialsRequest") if body)
    assert {row["salted_password"] for row in changed["upsertions"]} == {b"[hidden]"}
    made = [body for body in bodies_of(path, "CreateTopicsRequest") if body]
    assert len(made) == 7


def test_a_damaged_capture_fails_or_ends_with_a_row(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    data = bytearray((folder / "k391.clean.pcap").read_bytes())
    position = 24
    for _ in range(400):
        position += 16 + int.from_bytes(data[position + 8 : position + 12], "little")
    data[position + 8 : position + 12] = b"\xff\xff\xff\xff"
    (tmp_path / "damaged.pcap").write_bytes(data)
    reader = CaptureReader(parse_options({"path": str(tmp_path)}))
    (partition,) = reader.partitions()
    with pytest.raises(Malformed, match="damaged"):
        list(reader.read(partition))
    rows = load(spark, tmp_path, mode="PERMISSIVE", bodies="none").collect()
    assert len(rows) > 50
    assert [row.problem for row in rows if row.connection is None] == [
        f"{tmp_path}/damaged.pcap: packet of 4294967295 captured and "
        f"{int.from_bytes(data[position + 12 : position + 16], 'little')} original bytes, at byte {position}"
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"value.registry": "x"}, r"'value\.registry' is not supported: rows are requests and responses"),
        ({"port": "9092"}, r"Unknown option 'port' \(did you mean 'ports'\?\); docs/capture.md"),
        ({"ports": "9092;9093"}, "Option 'ports': expected a comma-separated list of ports"),
        ({"columns": "apis"}, r"unknown column 'apis' \(did you mean 'api'\?\)"),
        ({"apis": "Fetch, Produse"}, "Option 'apis': unknown API 'Produse' .did you mean 'Produce'"),
        ({"apis": ""}, "Option 'apis': expected a comma-separated list, got ''"),
        ({"clients": " , "}, "Option 'clients': expected a comma-separated list, got ' , '"),
        (
            {"bodies": "none", "columns": "api,request"},
            "Option 'columns': unknown column 'request' .did you mean 'request_time'",
        ),
        ({"message": "FetchReques"}, "unknown message 'FetchReques' .did you mean 'FetchRequest'"),
        ({"message": "TopicRecord"}, "Option 'message': 'TopicRecord' is not a request or response"),
        ({"columns": "body"}, "unknown column 'body'"),
        ({"bodies": "xml"}, "Option 'bodies': expected one of json, bytes, none"),
    ],
)
def test_invalid_options_are_rejected_with_a_remedy(options: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        column_types(parse_options({"path": "x", **options}))


def test_a_missing_path_is_rejected(tmp_path: Path) -> None:
    for path in (tmp_path / "missing", tmp_path / "*.pcap", tmp_path):
        with pytest.raises(LogError):
            CaptureReader(parse_options({"path": str(path)})).partitions()

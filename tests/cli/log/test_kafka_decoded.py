"""The decoders of `kwire log dump --like-kafka`, compared with the output of Kafka's tool."""

from __future__ import annotations

import gzip
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from tests.log.internal.dumps import batch, keyed, log_of
from tools.kafka import java

from kwire.cli.log.kafka_decoded import java_json
from kwire.messages import registry
from kwire.protocol import write_metadata_record

VERSIONS = {"modern": "3.9", "modern44": "4.3", "legacy": "2.8"}
DECODERS = {
    "__consumer_offsets": "--offsets-decoder",
    "__transaction_state": "--transaction-log-decoder",
    "__cluster_metadata": "--cluster-metadata-decoder",
    "__share_group_state": "--share-group-state-decoder",
    "__remote_log_metadata": "--remote-log-metadata-decoder",
}


@pytest.mark.sampled
@pytest.mark.requirement("S482-02", "R-40", "R-41", "R-43")
@pytest.mark.parametrize(
    ("dump", "topic", "count"),
    [
        ("modern", "__consumer_offsets", 3),
        ("modern", "__transaction_state", 3),
        ("modern", "__cluster_metadata", 1),
        ("modern44", "__consumer_offsets", 3),
        ("modern44", "__transaction_state", 3),
        ("modern44", "__cluster_metadata", 1),
        ("modern44", "__share_group_state", 3),
        ("legacy", "__consumer_offsets", 3),
    ],
)
def test_the_decoded_dump_equals_kafkas(
    dump: str, topic: str, count: int, kafka_logs: dict[str, Path], kwire: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = kafka_logs[dump] / "data"
    monkeypatch.chdir(data)
    expected = sorted((kafka_logs[dump] / "expected" / "dump" / "decoded").glob(f"{topic}-*.txt.gz"))
    assert len(expected) == count
    for file in expected:
        name = file.name.removesuffix(".txt.gz")
        files = [
            f"{name}/{each.name}" for kind in ("*.log", "*.checkpoint") for each in sorted((data / name).glob(kind))
        ]
        result = kwire("log", "dump", "--like-kafka", "--kafka-version", VERSIONS[dump], DECODERS[topic], *files)
        assert result.out == gzip.decompress(file.read_bytes()).decode(), file.name
        assert result.code == 0


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (75.0, "75.0"),
        (0.001, "0.001"),
        (0.0009, "9.0E-4"),
        (9999999.0, "9999999.0"),
        (10000000.0, "1.0E7"),
        (-12345678.5, "-1.23456785E7"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (5e-324, "4.9E-324"),
        (float("inf"), '"Infinity"'),
        (float("-inf"), '"-Infinity"'),
        (float("nan"), '"NaN"'),
    ],
)
def test_doubles_print_as_in_java(value: float, text: str) -> None:
    assert java_json(value) == text


def test_text_is_escaped_as_jackson_does() -> None:
    assert (
        java_json({"é": ['\x00\x1f"\\\n\x7f', True, None, -1]}) == '{"é":["\\u0000\\u001F\\"\\\\\\n\x7f",true,null,-1]}'
    )


def odd_records() -> list[tuple[bytes | None, bytes | None]]:
    """Records of unknown types and versions, and with bytes after the message, which coordinators ignore."""
    key: Any = registry.get("OffsetCommitKey")
    value: Any = registry.get("OffsetCommitValue")
    name, commit = keyed(key(group="g", topic="t", partition=1), value(offset=5, metadata='é "x"\n'), 3)
    assert commit is not None
    return [(b"\0\x63new", b"\0\0"), (name, commit + b"\0"), (name + b"\0", None), (b"\xff\xfe", None)]


def test_unknown_types_are_reported_and_trailing_bytes_ignored(tmp_path: Path, kwire: Callable) -> None:
    data = log_of(tmp_path, "__consumer_offsets-0", batch(odd_records(), 0))
    result = kwire("log", "dump", "--like-kafka", "--offsets-decoder", data)
    assert [line.partition(" key: ")[2] for line in result.out.splitlines()[3:]] == [
        "Unknown record type 99 at offset 0, skipping.",
        '{"type":"1","data":{"group":"g","topic":"t","partition":1}} payload: '
        '{"version":"3","data":{"offset":5,"leaderEpoch":-1,"metadata":"é \\"x\\"\\n","commitTimestamp":0}}',
        '{"type":"1","data":{"group":"g","topic":"t","partition":1}} payload: <DELETE>',
        "Unknown record type -2 at offset 3, skipping.",
    ]
    assert result.code == 0


def test_undecodable_records_are_reported_in_their_line(tmp_path: Path, kwire: Callable) -> None:
    key = registry.get("OffsetCommitKey")(group="g", topic="t", partition=1)  # type: ignore[call-arg]
    data = log_of(tmp_path, "__consumer_offsets-0", batch([(keyed(key, None)[0], b"\0\3\0"), (None, b"")], 0))
    result = kwire("log", "dump", "--like-kafka", "--offsets-decoder", data)
    assert " key: Error at offset 0, skipping. offset: " in result.out
    # Kafka's tool fails with an exception at a record without a key; ours reports it and continues with the next batch
    assert "record at offset 1 has no key" in result.err
    assert result.code == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--offsets-decoder",), "--offsets-decoder requires --like-kafka"),
        (("--skip-record-metadata",), "--skip-record-metadata requires --like-kafka"),
        (("--like-kafka", "--offsets-decoder", "--cluster-metadata-decoder"), "mutually exclusive"),
        (("--like-kafka", "--kafka-version", "3.9", "--share-group-state-decoder"), "not supported by Kafka 3.9"),
    ],
)
def test_mismatched_decoders_are_wrong_usage(
    arguments: tuple[str, ...], says: str, kafka_logs: dict[str, Path], kwire: Callable
) -> None:
    result = kwire("log", "dump", *arguments, kafka_logs["modern"] / "data" / "__consumer_offsets-0")
    assert result.code == 2
    assert says in result.err


def crowded_transactions() -> list[tuple[bytes | None, bytes | None]]:
    """Transactions over many partitions: the tool lists them in the order of a hash table."""
    chance = random.Random(5)
    key: Any = registry.get("TransactionLogKey")
    value: Any = registry.get("TransactionLogValue")
    records: list[tuple[bytes | None, bytes | None]] = []
    for count in (*range(30), 47, 48, 49, 96, 97, 200, 400):
        topics: dict[str, set[int]] = {}
        for _ in range(count):
            topic = chance.choice(["a", "orders", "txn", "__consumer_offsets", "été-ü", "t" * 30])
            topics.setdefault(topic, set()).add(chance.randrange(5000 if count > 50 else 40))
        for named in (topics, {"txn": set(chance.sample(range(1000), count))}):
            partitions = [
                value.PartitionsSchema(topic=topic, partition_ids=chance.sample(sorted(numbers), len(numbers)))
                for topic, numbers in named.items()
            ]
            records.append(
                keyed(
                    key(transactional_id=f"id-{count}"), value(transaction_status=1, transaction_partitions=partitions)
                )
            )
    return [*records, (b"\0\7x", b"\0\0"), keyed(key(transactional_id="gone"), None)]


def remote_records() -> list[tuple[bytes | None, bytes | None]]:
    """The three types of remote log records, and an invalid one."""
    segment: Any = registry.get("RemoteLogSegmentMetadataRecord")
    update: Any = registry.get("RemoteLogSegmentMetadataUpdateRecord")
    partition: Any = registry.get("RemotePartitionDeleteMetadataRecord")

    def segment_id(cls: Any) -> Any:
        where = cls.TopicIdPartitionEntry(name="orders", id=UUID(int=7), partition=3)
        return cls.RemoteLogSegmentIdEntry(topic_id_partition=where, id=UUID(int=8))

    epochs = [segment.SegmentLeaderEpochEntry(leader_epoch=epoch, offset=offset) for epoch, offset in ((4, 90), (0, 5))]
    messages = [
        segment(
            remote_log_segment_id=segment_id(segment),
            start_offset=5,
            end_offset=99,
            broker_id=1,
            max_timestamp_ms=1000,
            event_timestamp_ms=2000,
            segment_leader_epochs=epochs,
            segment_size_in_bytes=4096,
            custom_metadata=b"path",
        ),
        update(remote_log_segment_id=segment_id(update), broker_id=2, event_timestamp_ms=5, remote_log_segment_state=3),
        partition(
            topic_id_partition=partition.TopicIdPartitionEntry(name="t", id=UUID(int=9), partition=0),
            broker_id=1,
            event_timestamp_ms=6,
            remote_partition_delete_state=1,
        ),
    ]
    return [(None, write_metadata_record(message, 0)) for message in messages]


# What Kafka 3.9.1 printed of them.
REMOTE_LINES = [
    "RemoteLogSegmentMetadata{remoteLogSegmentId=RemoteLogSegmentId{topicIdPartition=AAAAAAAAAAAAAAAAAAAABw:orders-3, "
    "id=AAAAAAAAAAAAAAAAAAAACA}, startOffset=5, endOffset=99, brokerId=1, maxTimestampMs=1000, eventTimestampMs=2000, "
    "segmentLeaderEpochs={0=5, 4=90}, segmentSizeInBytes=4096, customMetadata=Optional[CustomMetadata{4 bytes}], "
    "state=COPY_SEGMENT_STARTED}",
    "RemoteLogSegmentMetadataUpdate{remoteLogSegmentId=RemoteLogSegmentId{topicIdPartition=AAAAAAAAAAAAAAAAAAAABw:"
    "orders-3, id=AAAAAAAAAAAAAAAAAAAACA}, customMetadata=Optional.empty, state=DELETE_SEGMENT_FINISHED, "
    "eventTimestampMs=5, brokerId=2}",
    "RemotePartitionDeleteMetadata{topicPartition=AAAAAAAAAAAAAAAAAAAACQ:t-0, state=DELETE_PARTITION_STARTED, "
    "eventTimestampMs=6, brokerId=1}",
]


def test_remote_log_records_print_as_java_objects(tmp_path: Path, kwire: Callable) -> None:
    data = log_of(tmp_path, "__remote_log_metadata-0", batch([*remote_records(), (None, b"\1\x63\0")], 0))
    arguments = ("log", "dump", "--like-kafka", "--remote-log-metadata-decoder", data)
    older = kwire(*arguments, "--kafka-version", "3.9").out.splitlines()[3:]
    assert [line.partition(" payload: ")[2] for line in older[:3]] == REMOTE_LINES
    assert "Error at offset 3, skipping. " in older[3]
    newer = kwire(*arguments).out.splitlines()[3]
    assert newer.endswith("state=COPY_SEGMENT_STARTED, txnIdxEmpty=false}")


@pytest.mark.jvm
@pytest.mark.slow
@pytest.mark.parametrize("bare", [(), ("--skip-record-metadata",)])
def test_decoders_print_the_output_of_kafka_3_9(
    bare: tuple[str, ...], kafka_logs: dict[str, Path], tmp_path: Path, kwire: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records and lines that the golden logs do not contain."""
    log_of(tmp_path, "__transaction_state-0", batch(crowded_transactions(), 0))
    log_of(tmp_path, "__consumer_offsets-0", batch(odd_records(), 0))
    log_of(tmp_path, "__consumer_offsets-9", batch([(b"\0\2\0\1g", None), (b"\0\x0b\0\1g", None)], 0))
    log_of(tmp_path, "__remote_log_metadata-0", batch(remote_records(), 0))
    shutil.copytree(kafka_logs["modern"] / "data" / "__cluster_metadata-0", tmp_path / "__cluster_metadata-0")
    for partition in ("__consumer_offsets-1", "__transaction_state-1"):
        shutil.copytree(kafka_logs["modern"] / "data" / partition, tmp_path / partition)
    monkeypatch.chdir(tmp_path)
    for topic in ("__transaction_state", "__consumer_offsets", "__cluster_metadata", "__remote_log_metadata"):
        files = [str(file) for file in sorted(Path().glob(f"{topic}-*/*")) if file.suffix in (".log", ".checkpoint")]
        printed = java("kafka.tools.DumpLogSegments", DECODERS[topic], *bare, "--files", ",".join(files))
        result = kwire("log", "dump", "--like-kafka", "--kafka-version", "3.9", DECODERS[topic], *bare, *files)
        assert result.out == printed

"""The logs of a running cluster beside the same logs as a directory, and what happens to a log during a read."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import kwire
import kwire.polars
from kwire.broker import Broker
from kwire.client import Client, Producer
from kwire.client.cluster_logs import ClusterLog, ClusterLogs
from kwire.errors import CorruptBatch, LogError, OptionError
from kwire.log import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, LogDirectory
from kwire.log.reading.readable_log import ReadableLog
from kwire.log.reading.runs import ISOLATIONS
from kwire.maintenance.verify import verify_logs
from kwire.messages import (
    CreateTopicsRequest,
    DeleteRecordsRequest,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from kwire.protocol.error_codes import ErrorCode
from kwire.records import ColumnWriter, read_batches
from tests.broker.still import StillBroker
from tests.rewriting_proxy import RewritingProxy

SMALL = {"max.partition.fetch.bytes": 300, "default.api.timeout.ms": 5_000}
"""A few batches in each Fetch response, so that a read takes many of them."""


@pytest.fixture(scope="module")
def served(kafka_logs: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, LogDirectory]]:
    """The URL of a broker on a copy of real Kafka's log directory, and the directory."""
    data = tmp_path_factory.mktemp("served") / "data"
    shutil.copytree(kafka_logs["modern"] / "data", data)
    with StillBroker(data_dir=data) as broker:
        yield f"kafka://{broker.bootstrap_servers}", LogDirectory(data)


TOPICS = ("orders", "txn", "compacted", "compacted-txn", "trimmed", "logappend", "ids", "empty", "orders.recompressed")


def pairs(served: tuple[str, LogDirectory], **settings: Any) -> Iterator[tuple[ReadableLog, ReadableLog]]:
    url, directory = served
    with ClusterLogs(url, **settings) as cluster:
        for key in directory:
            if key[0] in TOPICS:
                yield cluster[key], directory[key]


def test_a_cluster_has_the_partitions_and_offsets_of_its_directory(served: tuple[str, LogDirectory]) -> None:
    url, directory = served
    cluster = kwire.open(url)
    assert set(cluster) == {key for key in directory if key[0] != "__cluster_metadata"}
    for log, stored in pairs(served):
        assert (log.log_start_offset, log.log_end_offset, log.last_stable_offset, log.topic_id, log.size_bytes) == (
            stored.log_start_offset,
            stored.log_end_offset,
            stored.last_stable_offset,
            stored.topic_id,
            stored.size_bytes,
        )
        assert log.high_watermark == log.log_end_offset
        assert log.segment_count is None
        assert log.damage is None
        kept = [each for each in stored.leader_epochs if each.start_offset < stored.log_end_offset]
        assert log.leader_epochs[: len(kept)] == kept


def test_batches_of_a_cluster_are_the_stored_bytes(served: tuple[str, LogDirectory]) -> None:
    for log, stored in pairs(served, **SMALL):
        kept = [b for _, b in stored.batches() if b.last_offset >= stored.log_start_offset]
        assert [bytes(b.buffer) for _, b in log.batches()] == [bytes(b.buffer) for b in kept]


@pytest.mark.sampled
@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_records_of_a_cluster_are_those_of_its_directory(served: tuple[str, LogDirectory], isolation: Any) -> None:
    for log, stored in pairs(served, **SMALL):
        middle = (stored.log_start_offset + stored.log_end_offset) // 2
        for start, end in ((0, None), (middle, None), (max(middle - 7, 0), middle + 3), (middle, middle)):
            mine = log.read_arrow(start, end, isolation, ["offset", "key", "value", "headers", "timestamp"]).read_all()
            theirs = stored.read_arrow(start, end, isolation, mine.column_names).read_all()
            assert mine.equals(theirs), (log, start, end)
        assert list(log.read(middle, None, isolation)) == list(stored.read(middle, None, isolation))


def test_times_are_looked_up_by_the_broker(served: tuple[str, LogDirectory]) -> None:
    for log, stored in pairs(served):
        newest = max((batch.max_timestamp for _, batch in stored.batches()), default=None)
        assert log.last_timestamp == newest
        for time in (EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, 0, 1760000005000, newest, 1 << 60):
            if time is not None:
                mine, theirs = log.offset_for_time(time), stored.offset_for_time(time)
                assert (mine and mine[:2]) == (theirs and theirs[:2]), (log, time)


def test_a_cluster_is_verified_without_damage(served: tuple[str, LogDirectory]) -> None:
    url, directory = served
    cluster = ClusterLogs(url)
    found = verify_logs(cluster)
    assert found.damages == []
    assert "replicas" in found.unchecked
    for each in found.partitions:
        stored = directory[each.log.topic, each.log.partition]
        assert each.log_end_offset == stored.log_end_offset
        assert each.size_bytes == sum(
            batch.size_bytes for _, batch in stored.batches() if batch.last_offset >= stored.log_start_offset
        )


def test_reads_may_be_interleaved_and_given_up(served: tuple[str, LogDirectory]) -> None:
    url, directory = served
    cluster = ClusterLogs(url, **SMALL)
    keys = [("orders", 0), ("orders", 1), ("ids", 0)]
    readers = [cluster[key].read() for key in keys]
    for of_cluster, of_files in zip(
        zip(*readers, strict=False), zip(*(directory[k].read() for k in keys), strict=False), strict=True
    ):
        assert of_cluster == of_files
    for key in keys:
        assert len(list(islice(cluster[key].read(), 3))) == 3  # the next Fetch is under way
        assert cluster[key].log_end_offset == directory[key].log_end_offset


def test_a_url_with_a_topic_or_partition_has_only_that(served: tuple[str, LogDirectory]) -> None:
    url, _ = served
    assert list(ClusterLogs(f"{url}/orders")) == [("orders", 0), ("orders", 1), ("orders", 2)]
    only = ClusterLogs(f"{url}/orders-1")
    assert list(only) == [("orders", 1)]
    with pytest.raises(LogError, match="no partition 0 of topic 'orders'; available partitions: \\[1\\]"):
        only["orders", 0]
    with pytest.raises(OptionError, match="no topic 'nowhere'"):
        kwire.open(f"{url}/nowhere")


def test_open_takes_directories_and_urls(served: tuple[str, LogDirectory], tmp_path: Path) -> None:
    _, directory = served
    assert isinstance(kwire.open(directory.url), LogDirectory)
    assert isinstance(kwire.open(Path(directory.url) / "orders-0"), LogDirectory)
    with pytest.raises(LogError, match="no such file or directory"):
        kwire.open(tmp_path / "nowhere")
    for opened in (kwire.open, lambda url, **given: kwire.polars.scan(url, "orders", **given)):
        with pytest.raises(OptionError, match=r"^isolation_level: a setting of a URL or cluster; .* is a local path"):
            opened(directory.url, isolation_level="read_committed")
    for path in (f"file://{tmp_path}/logs", tmp_path / "kafka.pcap"):  # fsspec's driver of files takes any setting
        with pytest.raises(OptionError, match=r"^nonsense: a setting of a URL or cluster; .* is a local path"):
            kwire.open(path, nonsense=1)
    rows = [kwire.polars.scan(directory.url, "txn", isolation=each).collect().height for each in ISOLATIONS]
    assert rows == [
        sum(len(list(log.read(isolation=each))) for log in directory.of_topic("txn")) for each in ISOLATIONS
    ]
    assert rows[0] > rows[1] > 0


# ---- what happens during a read


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


def create(client: Client, name: str, partitions: int = 1) -> None:
    topic = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    client.request(CreateTopicsRequest(topics=[topic], timeout_ms=10_000))


def write(client: Client, topic: str, batches: int) -> None:
    producer = Producer(client)
    for n in range(batches):
        writer = ColumnWriter(**producer.fields(topic, 0))
        (piece,) = writer.write(pa.record_batch({"value": pa.array([b"%d" % n] * 10, pa.binary())}))
        producer.send(topic, 0, piece, 10)


def delete_records(client: Client, topic: str, before: int) -> None:
    partition = DeleteRecordsRequest.DeleteRecordsPartition(partition_index=0, offset=before)
    one = DeleteRecordsRequest.DeleteRecordsTopic(name=topic, partitions=[partition])
    client.request(DeleteRecordsRequest(topics=[one], timeout_ms=10_000))


def delete_topic(client: Client, name: str) -> None:
    topic = DeleteTopicsRequest.DeleteTopicState(name=name)
    request = DeleteTopicsRequest(topics=[topic], topic_names=[name], timeout_ms=10_000)
    client.request(request, DeleteTopicsResponse)


def opened(broker: Broker, topic: str) -> tuple[ClusterLogs, ClusterLog]:
    cluster = ClusterLogs(f"kafka://{broker.bootstrap_servers}", **SMALL)
    create(cluster.client, topic)
    write(cluster.client, topic, 100)
    cluster = cluster.reopened()
    return cluster, cluster[topic, 0]


def test_a_read_ends_where_the_log_ended_when_it_began(broker: Broker) -> None:
    cluster, log = opened(broker, "grows")
    assert log.log_end_offset == 1000
    records = log.read()
    first = next(records).offset
    write(cluster.client, "grows", 10)
    assert [first, *(record.offset for record in records)] == list(range(1000))
    assert sum(1 for _ in log.read()) == 1100
    assert log.log_end_offset == 1000
    assert log.reopened().log_end_offset == 1100


def test_records_that_retention_deletes_during_a_read_are_skipped_and_noted(broker: Broker) -> None:
    cluster, log = opened(broker, "shrinks")
    records = log.read()
    before = [next(records).offset for _ in range(10)]
    delete_records(cluster.client, "shrinks", 700)
    rest = [record.offset for record in records]
    assert before == list(range(10))
    assert rest[-1] == 999
    assert 700 in rest
    skipped = sorted(set(range(1000)) - set(before + rest))
    assert skipped == list(range(skipped[0], 700))
    (note,) = cluster.ignored
    assert (note.name, note.reason) == (
        "shrinks-0",
        f"retention deleted offsets {skipped[0]} to 699 before they were read",
    )


def test_an_empty_range_needs_no_broker() -> None:
    with Broker() as broker:
        cluster = ClusterLogs(f"kafka://{broker.bootstrap_servers}", **SMALL)
        create(cluster.client, "empty")
        pinned = cluster.reopened()["empty", 0].pin()
    assert list(pinned.runs) == []


def test_a_transaction_of_one_record_is_aborted_before_its_marker_is_read(broker: Broker) -> None:
    url = f"kafka://{broker.bootstrap_servers}"
    with Client(broker.bootstrap_servers, **{"transactional.id": "tx"}) as client, Producer(client) as producer:
        create(client, "aborted")
        producer.begin()
        (piece,) = ColumnWriter(**producer.fields("aborted", 0)).write(pa.record_batch({"value": pa.array([b"v"])}))
        producer.send("aborted", 0, piece, 1)
        producer.abort()
        with ClusterLogs(url, **SMALL | {"max.partition.fetch.bytes": 1}) as cluster:  # a batch in each response
            log = cluster["aborted", 0]
            assert len(list(log.pin(0, 1, "read_committed").runs)) == 1
            assert list(log.read(0, 1, isolation="read_committed")) == []


@pytest.mark.parametrize("first", [499, 500, 501])
def test_an_offset_after_the_end_is_not_taken_for_retention_when_the_log_begins_there_later(
    broker: Broker, first: int
) -> None:
    """A new leader ended below the read's offset, then got other records, before it is asked for its range."""
    topic = f"begins-{first}"
    cluster, _ = opened(broker, topic)
    with RewritingProxy(("127.0.0.1", broker.port)) as proxy:
        logs = ClusterLogs(f"kafka://{proxy.address}", **SMALL)
        pinned = logs[topic, 0].pin(500)

        def refuse(response: Any) -> None:
            proxy.rewrite.clear()
            (data,) = response.responses[0].partitions
            data.records, data.error_code = None, ErrorCode.OFFSET_OUT_OF_RANGE
            delete_records(cluster.client, topic, first)

        proxy.rewrite["FetchResponse"] = refuse
        if first > 500:
            assert sum(1 for _ in pinned.runs) > 1
            assert [each.reason for each in logs.ignored] == [
                "retention deleted offsets 500 to 500 before they were read"
            ]
            return
        with pytest.raises(LogError, match=r"the log ends at offset 1000; .* it was truncated, or the topic was"):
            list(pinned.runs)
        assert logs.ignored == []


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("again", [False, True], ids=["deleted", "created again"])
def test_a_topic_deleted_during_a_read_is_an_error(broker: Broker, again: bool) -> None:
    cluster, log = opened(broker, "dies")
    records = log.read()
    next(records)
    delete_topic(cluster.client, "dies")
    if again:
        create(cluster.client, "dies")
        write(cluster.client, "dies", 100)
    with pytest.raises(LogError, match="the topic was deleted, or deleted and created again, during the read"):
        list(records)
    assert log.is_deleted


def truncated_and_rewritten(data: Path) -> None:
    """Do to a log what an unclean leader election does: cut its end, and write other records under a later epoch."""
    folder = data / "diverges-0"
    (file,) = folder.glob("*.log")
    whole = file.read_bytes()
    cut = [batch.position for batch in read_batches(whole) if batch.base_offset == 500]
    rows = pa.record_batch({"value": pa.array([b"other"] * 600, pa.binary())})
    other = bytearray(b"".join(ColumnWriter(base_offset=500).write(rows)))
    for batch in list(read_batches(bytes(other))):
        other[batch.position + 12 : batch.position + 16] = (90).to_bytes(4, "big")  # the leader epoch
    file.write_bytes(whole[: cut[0]] + bytes(other))
    epoch = max(batch.partition_leader_epoch for batch in read_batches(whole))
    (folder / "leader-epoch-checkpoint").write_text(f"0\n2\n{epoch} 0\n90 500\n")
    for kind in ("index", "timeindex", "snapshot"):
        for each in folder.glob(f"*.{kind}"):
            each.unlink()


def test_a_log_that_was_truncated_during_a_read_is_an_error(tmp_path: Path) -> None:
    with Broker(data_dir=tmp_path) as broker:
        port = int(broker.bootstrap_servers.rpartition(":")[2])
        cluster, log = opened(broker, "diverges")
        records = log.read()
        for _ in range(700):
            next(records)
    truncated_and_rewritten(tmp_path)
    with Broker(data_dir=tmp_path, port=port):
        with pytest.raises(LogError, match=r"the log was truncated to offset 500 by an unclean leader election"):
            list(records)
        cluster.close()


def test_a_restart_of_the_leader_does_not_disturb_a_read(tmp_path: Path) -> None:
    with Broker(data_dir=tmp_path) as broker:
        port = int(broker.bootstrap_servers.rpartition(":")[2])
        cluster, log = opened(broker, "stays")
        records = log.read()
        found = [next(records).offset for _ in range(300)]
    with Broker(data_dir=tmp_path, port=port):
        found += [record.offset for record in records]
        cluster.close()
    assert found == list(range(1000))


Change = Callable[[bytearray], None]


def flipped(data: bytearray) -> None:
    data[-1] ^= 1


def moved(data: bytearray) -> None:
    data[7] ^= 2


@pytest.mark.parametrize(("change", "error"), [(flipped, "stored CRC|checksum"), (moved, "offsets")])
def test_damage_on_the_leader_is_found_with_its_offsets(tmp_path: Path, change: Change, error: str) -> None:
    with Broker(data_dir=tmp_path) as broker:
        opened(broker, "damaged")
    (file,) = (tmp_path / "damaged-0").glob("*.log")
    data = bytearray(file.read_bytes())
    batch = next(batch for batch in read_batches(bytes(data)) if batch.base_offset == 500)
    part = data[batch.position : batch.position + batch.size_bytes]
    change(part)
    data[batch.position : batch.position + batch.size_bytes] = part
    file.write_bytes(data)
    with Broker(data_dir=tmp_path) as broker, ClusterLogs(f"kafka://{broker.bootstrap_servers}/damaged") as cluster:
        log = cluster["damaged", 0]
        (damage,) = log.verify()
        assert damage.offsets == (500, 509)
        assert damage.position is None
        with pytest.raises(CorruptBatch, match=error):
            list(log.read())

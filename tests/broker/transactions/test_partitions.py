"""Requests with transactional data and markers, on real partitions of a broker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kwire import messages as m
from kwire.broker import Broker
from kwire.broker.transactions import BLOCK_SIZE, ProducerIdAndEpoch, TransactionState
from kwire.errors import LogError, OptionError
from kwire.protocol.error_codes import ErrorCode
from kwire.records import BatchBuilder
from tests.broker.security.raw_client import RawClient
from tests.waiting import until

SMALL = {"offsets_topic_num_partitions": 1, "transaction_state_log_num_partitions": 3}
NONE = ErrorCode.NONE
PARTITIONS = 12


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(**SMALL) as running:
        running.call(lambda node: node.controller.create_topic("t", PARTITIONS))
        yield running


@pytest.fixture(scope="module")
def client(broker: Broker) -> Iterator[RawClient]:
    with RawClient(broker) as connected:
        yield connected


@pytest.fixture
def partition(request: pytest.FixtureRequest) -> int:
    """A partition that no other test uses."""
    here = [item.nodeid for item in request.node.session.items if item.path == request.node.path]
    return here.index(request.node.nodeid)


def init(client: RawClient, transactional_id: str) -> ProducerIdAndEpoch:
    request = m.InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=60_000)
    answered = client.ask(request, 5)
    assert answered.error_code == NONE
    return ProducerIdAndEpoch(answered.producer_id, answered.producer_epoch)


def produce(
    client: RawClient,
    partition: int,
    producer: ProducerIdAndEpoch,
    *,
    version: int,
    transactional_id: str | None,
    sequence: int = 0,
    is_transactional: bool = True,
) -> ErrorCode:
    """Produce one record and return the error code."""
    builder = BatchBuilder(**producer._asdict(), base_sequence=sequence, is_transactional=is_transactional)
    builder.append(None, b"x", timestamp=1)
    data = m.ProduceRequest.PartitionProduceData(index=partition, records=builder.build())
    topic = m.ProduceRequest.TopicProduceData(name="t", partition_data=[data])
    request = m.ProduceRequest(acks=-1, timeout_ms=1000, transactional_id=transactional_id, topic_data=[topic])
    [answered] = client.ask(request, version).responses
    return ErrorCode(answered.partition_responses[0].error_code)


def add(client: RawClient, transactional_id: str, producer: ProducerIdAndEpoch, partition: int) -> None:
    request = m.AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_producer_id=producer.producer_id,
        v3_and_below_producer_epoch=producer.producer_epoch,
        v3_and_below_topics=[m.AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name="t", partitions=[partition])],
    )
    [answered] = client.ask(request, 3).results_by_topic_v3_and_below
    assert answered.results_by_partition[0].partition_error_code == NONE


def end(client: RawClient, transactional_id: str, producer: ProducerIdAndEpoch, version: int) -> ProducerIdAndEpoch:
    request = m.EndTxnRequest(transactional_id=transactional_id, **producer._asdict(), committed=True)
    answered = client.ask(request, version)
    assert answered.error_code == NONE
    return ProducerIdAndEpoch(answered.producer_id, answered.producer_epoch)


def offsets(broker: Broker, partition: int) -> tuple[int, int]:
    """Return (last stable offset, log end offset)."""

    def ask(node: Any) -> tuple[int, int]:
        log = node.topics.partition("t", partition).opened
        return log.last_stable_offset, log.log_end_offset

    return broker.call(ask)


@pytest.mark.parametrize(
    ("version", "code"), [(10, ErrorCode.INVALID_TXN_STATE), (11, ErrorCode.TRANSACTION_ABORTABLE)]
)
def test_data_for_an_unadded_partition_opens_no_transaction(
    broker: Broker, client: RawClient, partition: int, version: int, code: ErrorCode
) -> None:
    name = f"announced-{version}"
    producer = init(client, name)
    assert produce(client, partition, producer, version=version, transactional_id=name) == code
    assert offsets(broker, partition) == (0, 0)
    add(client, name, producer, partition)
    assert produce(client, partition, producer, version=version, transactional_id=name) == NONE
    assert offsets(broker, partition) == (0, 1)
    end(client, name, producer, 4)
    assert offsets(broker, partition) == (2, 2)
    late = produce(client, partition, producer, version=version, transactional_id=name, sequence=1)
    assert late == code  # it was on its way when the transaction ended
    assert offsets(broker, partition) == (2, 2)


def test_newer_producers_add_partitions_by_producing_and_late_data_is_fenced(
    broker: Broker, client: RawClient, partition: int
) -> None:
    name, version = "writes", 12
    first = init(client, name)
    assert produce(client, partition, first, version=version, transactional_id=name) == NONE
    assert produce(client, partition, first, version=version, transactional_id=name, sequence=1) == NONE
    second = end(client, name, first, 5)
    assert second == (first.producer_id, first.producer_epoch + 1)
    assert offsets(broker, partition) == (3, 3)
    late = produce(client, partition, first, version=version, transactional_id=name, sequence=2)
    assert late == ErrorCode.INVALID_PRODUCER_EPOCH
    assert produce(client, partition, second, version=version, transactional_id=name) == NONE
    assert offsets(broker, partition) == (3, 4)
    end(client, name, second, 5)
    assert offsets(broker, partition) == (5, 5)


def test_transactional_data_requires_a_transactional_id(client: RawClient, partition: int) -> None:
    producer = init(client, "id")
    code = produce(client, partition, producer, version=12, transactional_id=None)
    assert code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert produce(client, partition, producer, version=12, transactional_id=None, is_transactional=False) == NONE


def test_write_txn_markers_ends_a_hanging_transaction(broker: Broker, client: RawClient, partition: int) -> None:
    init(client, "hanging")
    producer = init(client, "hanging")
    produce(client, partition, producer, version=12, transactional_id="hanging")
    assert offsets(broker, partition) == (0, 1)

    def mark(epoch: int, *partitions: int) -> list[int]:
        topic = m.WriteTxnMarkersRequest.WritableTxnMarkerTopic(name="t", partition_indexes=list(partitions))
        marker = m.WriteTxnMarkersRequest.WritableTxnMarker(
            producer_id=producer.producer_id, producer_epoch=epoch, transaction_result=False, topics=[topic]
        )
        [answered] = client.ask(m.WriteTxnMarkersRequest(markers=[marker]), 1).markers
        return [each.error_code for each in answered.topics[0].partitions]

    assert mark(producer.producer_epoch, partition, 1000) == [NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert offsets(broker, partition) == (2, 2)
    assert mark(producer.producer_epoch - 1, partition) == [ErrorCode.INVALID_PRODUCER_EPOCH]
    assert mark(-1, partition) == [ErrorCode.UNKNOWN_SERVER_ERROR]


def test_a_failed_marker_is_written_once_the_disk_recovers(broker: Broker, client: RawClient, partition: int) -> None:
    producer = init(client, "disk")
    produce(client, partition, producer, version=12, transactional_id="disk")

    def break_disk(node: Any) -> None:
        log = node.topics.partition("t", partition).opened
        node.topics.partition("t", partition).log = Broken(log)

    def repair_disk(node: Any) -> None:
        node.topics.partition("t", partition).log = node.topics.partition("t", partition).log.whole

    broker.call(break_disk)
    end(client, "disk", producer, 5)
    assert broker.call(lambda node: node.transactions.describe("disk").status) == TransactionState.PREPARE_COMMIT
    broker.call(repair_disk)
    until(
        lambda: broker.call(lambda node: node.transactions.describe("disk").status) == TransactionState.COMPLETE_COMMIT
    )
    assert offsets(broker, partition) == (2, 2)


class Broken:
    """A log that fails to write markers."""

    def __init__(self, whole: Any) -> None:
        self.whole = whole

    def __getattr__(self, name: str) -> Any:
        return getattr(self.whole, name)

    def append_marker(self, *args: Any, **named: Any) -> None:
        raise LogError("no space left on device")


def test_producer_ids_are_reserved_before_they_are_assigned(tmp_path: Any) -> None:
    seen = set()
    for _ in range(2):
        with Broker(tmp_path, **SMALL) as broker:
            for _ in range(3):
                seen.add(broker.call(lambda node: node.transactions.init_producer_id(None, -1).producer_id))
            claimed = broker.call(lambda node: node.cluster.next_producer_id)
            assert max(seen) < claimed
    assert len(seen) == 6
    assert max(seen) == BLOCK_SIZE + 2


@pytest.mark.parametrize("version", [-1, 3])
def test_an_unknown_transaction_version_prevents_startup(version: int) -> None:
    with pytest.raises(OptionError, match="transaction_version"), Broker(transaction_version=version):
        pass

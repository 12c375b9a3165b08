"""`kafka-live` writes to Kafka as to the embedded broker: transactions, commit marks, rejections."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from tools import kafka

pytest.importorskip("pyspark.sql.datasource")
pytest.importorskip("confluent_kafka")

from tests.spark.live import test_sink as sink

pytestmark = [pytest.mark.jvm, pytest.mark.slow]

# 2.8: OffsetFetch asks for one group at a time, TxnOffsetCommit looks for partitions; 4.4: transactions of KIP-890.
VERSIONS = ["2.8.2", "3.9.1", "4.4.0"]
ONE_NODE = {
    "offsets.topic.num.partitions": 3,
    "offsets.topic.replication.factor": 1,
    "transaction.state.log.num.partitions": 3,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
}


@pytest.fixture(scope="module", params=VERSIONS)
def servers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    broker = kafka.KafkaBroker(tmp_path_factory.mktemp("kafka"), version=request.param, heap="512m", **ONE_NODE)
    with broker:
        yield broker.bootstrap_servers


@pytest.mark.parametrize(
    "behaves",
    [
        sink.test_consumers_read_written_keys_headers_and_nulls,
        sink.test_a_batch_above_max_message_bytes_is_rejected_with_a_remedy,
        sink.test_rows_are_visible_only_after_the_driver_commits,
        sink.test_a_retried_task_is_written_once_and_its_first_attempt_reported,
        sink.test_a_task_that_fails_aborts_its_transaction,
        sink.test_a_committed_batch_is_not_written_again,
    ],
)
def test_kafka_accepts_the_same_writes_as_the_embedded_broker(servers: str, behaves: Callable[[str], None]) -> None:
    behaves(servers)


def test_a_partially_committed_batch_resumes(servers: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sink.test_a_partially_committed_batch_resumes(servers, monkeypatch)

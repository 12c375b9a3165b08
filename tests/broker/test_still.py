"""A still broker serves real Kafka's logs as they are, however long a test takes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kwire.broker import Broker
from kwire.client.cluster_logs import ClusterLogs
from tests.broker.still import StillBroker

TEN_DAYS_MS = 10 * 86_400_000


def offsets(broker: Broker) -> dict[tuple[str, int], tuple[int, int, int]]:
    with ClusterLogs(f"kafka://{broker.bootstrap_servers}") as cluster:
        return {key: (log.log_start_offset, log.last_stable_offset, log.log_end_offset) for key, log in cluster.items()}


@pytest.mark.parametrize(("kind", "is_still"), [(StillBroker, True), (Broker, False)])
@pytest.mark.parametrize("archive", ["modern", "modern44"])
def test_only_a_still_broker_keeps_transactions_sessions_and_old_records(
    archive: str, kind: type[Broker], is_still: bool, kafka_logs: dict[str, Path], tmp_path: Path
) -> None:
    shutil.copytree(kafka_logs[archive] / "data", tmp_path / "data")
    with kind(data_dir=tmp_path / "data") as broker:
        before = offsets(broker)
        broker.advance(TEN_DAYS_MS)
        changed = {
            topic for topic, partition in before if offsets(broker)[topic, partition] != before[topic, partition]
        }
        assert (changed == set()) is is_still
        assert is_still or {"__transaction_state", "__consumer_offsets"} < changed

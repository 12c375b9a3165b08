"""Log directories of several nodes, with logs of given leader epochs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from uuid import UUID

from kwire.identifiers import TopicPartition
from kwire.log.writing.log_manager import LogManager
from kwire.records import AppendOrigin, BatchBuilder

NOW_MS = 1_800_000_000_000
CLUSTER_ID = "a3dpcmUtdGVzdC1jbHVzdA"
ORDERS = UUID(int=4711)
ONE_EPOCH = ((0, 10),)

Epochs = Sequence[tuple[int, int]]
"""(leader epoch, number of records), oldest first."""


def node(
    path: Path,
    node_id: int,
    logs: Mapping[TopicPartition, Epochs],
    *,
    topic_id: UUID | None = ORDERS,
    cluster_id: str = CLUSTER_ID,
    clean: bool = True,
    producer_id: int = -1,
) -> Path:
    """Write the log directory of a node, with one batch per record."""
    manager = LogManager.open(path, now_ms=NOW_MS, node_id=node_id, cluster_id=cluster_id)
    for (topic, partition), epochs in logs.items():
        log = manager.create(topic, partition, now_ms=NOW_MS, topic_id=topic_id)
        for epoch, count in epochs:
            for _ in range(count):
                batch = BatchBuilder(
                    base_offset=log.log_end_offset,
                    partition_leader_epoch=epoch,
                    producer_id=producer_id,
                    producer_epoch=0 if producer_id >= 0 else -1,
                    base_sequence=log.log_end_offset if producer_id >= 0 else -1,
                )
                batch.append(b"key", b"%s %d of epoch %d" % (topic.encode(), log.log_end_offset, epoch))
                log.append_as_given(batch.build(), now_ms=NOW_MS, origin=AppendOrigin.REPLICATION)
    manager.close(clean=clean)
    return path

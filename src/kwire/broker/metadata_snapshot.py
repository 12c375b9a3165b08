"""Snapshots of the metadata log: the records that make its state, without those that were overtaken (KIP-630).

    <end offset>-<epoch>.checkpoint    SNAPSHOT_HEADER, the voters' own records, the state's records, SNAPSHOT_FOOTER

The fold below keeps the records themselves with the versions they were written in, so that nothing of a record that
another release wrote is lost. A change record is merged into the record it changes.
Source: org.apache.kafka.image.MetadataImage.write, org.apache.kafka.snapshot.RecordsSnapshotWriter 3.9.1.
"""

from __future__ import annotations

import copy
from collections.abc import Hashable, Iterable, Sequence

from kwire import messages as m
from kwire.errors import LogError
from kwire.messages.base import Message
from kwire.protocol.record_values import write_metadata_record
from kwire.records import BatchBuilder, ControlRecordType, write_control_batch
from kwire.storage.file_system import FileSystem

__all__ = ["SnapshotRecords", "snapshot_name", "write_snapshot"]

Versioned = tuple[Message, int]

RECORDS_PER_BATCH = 1000
TOPIC_RESOURCE = 2
NO_LEADER_CHANGE, NO_RECOVERY_CHANGE = -2, -1
PARTITION_LISTS = ("isr", "replicas", "removing_replicas", "adding_replicas", "directories")
LOG_DIRS_VERSION, CORDONED_VERSION = 3, 4  # of RegisterBrokerRecord
ELR_LISTS = ("eligible_leader_replicas", "last_known_elr")


class SnapshotRecords:
    """The records that a snapshot of now would have. Apply those that count, in order, once they are on the disk."""

    def __init__(self) -> None:
        self._live: dict[Hashable, Versioned] = {}
        self._topic_names: dict[Hashable, str] = {}

    def __len__(self) -> int:
        return len(self._live)

    def records(self) -> list[Versioned]:
        """Each record with its version; a topic before its partitions. The records are not changed later."""
        return list(self._live.values())

    def apply(self, record: Message, version: int) -> None:
        """Take one record in. Raises LogError for a kind that is not known: a snapshot would lose it."""
        match record:
            case m.PartitionChangeRecord():
                self._change_partition(record, version)
            case m.BrokerRegistrationChangeRecord():
                self._change_broker(record, version)
            case m.FenceBrokerRecord() | m.UnfenceBrokerRecord():
                self._set_fenced(record.id, isinstance(record, m.FenceBrokerRecord))
            case m.ClearElrRecord():
                self._clear_elr(record.topic_name)
            case m.RemoveTopicRecord():
                self._remove_topic(record)
            case m.NoOpRecord():
                pass
            case _:
                self._put(record, version)

    def _put(self, record: Message, version: int) -> None:
        """A record that replaces, or removes, the one with its key."""
        key: Hashable
        removes = False
        match record:
            case m.TopicRecord():
                key = ("topic", record.topic_id)
                self._topic_names[record.topic_id] = record.name
            case m.PartitionRecord():
                key = ("partition", record.topic_id, record.partition_id)
            case m.ConfigRecord():
                key, removes = ("config", record.resource_type, record.resource_name, record.name), record.value is None
            case m.FeatureLevelRecord():
                key, removes = ("feature", record.name), record.feature_level == 0
            case m.RegisterBrokerRecord():
                key = ("broker", record.broker_id)
            case m.UnregisterBrokerRecord():
                key, removes = ("broker", record.broker_id), True
            case m.RegisterControllerRecord():
                key = ("controller", record.controller_id)
            case m.ClientQuotaRecord():
                entity = tuple((each.entity_type, each.entity_name) for each in record.entity)
                key, removes = ("quota", entity, record.key), record.remove
            case m.UserScramCredentialRecord():
                key = ("user", record.name, record.mechanism)
            case m.RemoveUserScramCredentialRecord():
                key, removes = ("user", record.name, record.mechanism), True
            case m.AccessControlEntryRecord():
                key = ("acl", record.id)
            case m.RemoveAccessControlEntryRecord():
                key, removes = ("acl", record.id), True
            case m.DelegationTokenRecord():
                key = ("token", record.token_id)
            case m.RemoveDelegationTokenRecord():
                key, removes = ("token", record.token_id), True
            case m.ProducerIdsRecord():
                key = "producer ids"
                record = m.ProducerIdsRecord(broker_id=-1, next_producer_id=record.next_producer_id)  # as Kafka's
            case m.ZkMigrationStateRecord():
                key = "migration"
            case _:
                raise LogError(f"{type(record).__name__} is not known to snapshots")
        if removes:
            self._live.pop(key, None)
        else:
            self._live[key] = record, version

    def _remove_topic(self, record: m.RemoveTopicRecord) -> None:
        name = self._topic_names.pop(record.topic_id, None)
        own = {("topic", record.topic_id), ("partition", record.topic_id), ("config", TOPIC_RESOURCE, name)}
        gone = [key for key in self._live if isinstance(key, tuple) and (key[:2] in own or key[:3] in own)]
        for key in gone:
            del self._live[key]

    def _change_partition(self, change: m.PartitionChangeRecord, version: int) -> None:
        """Source: org.apache.kafka.metadata.PartitionRegistration.merge."""
        key = ("partition", change.topic_id, change.partition_id)
        found = self._live.get(key)
        if found is None:
            return
        partition = copy.copy(found[0])
        assert isinstance(partition, m.PartitionRecord)
        for name in (*PARTITION_LISTS, *ELR_LISTS):
            value = getattr(change, name)
            if value is not None:
                setattr(partition, name, value)
        if change.leader != NO_LEADER_CHANGE:
            partition.leader = change.leader
            partition.leader_epoch += 1
        if change.leader_recovery_state != NO_RECOVERY_CHANGE:
            partition.leader_recovery_state = change.leader_recovery_state
        partition.partition_epoch += 1
        self._live[key] = partition, max(found[1], version)

    def _clear_elr(self, topic_name: str) -> None:
        for key, (record, version) in self._live.items():
            if isinstance(record, m.PartitionRecord) and topic_name in ("", self._topic_names.get(record.topic_id)):
                partition = copy.copy(record)
                partition.eligible_leader_replicas = partition.last_known_elr = None
                self._live[key] = partition, version

    def _change_broker(self, change: m.BrokerRegistrationChangeRecord, version: int) -> None:
        found = self._live.get(("broker", change.broker_id))
        if found is None:
            return
        broker = copy.copy(found[0])
        assert isinstance(broker, m.RegisterBrokerRecord)
        if change.fenced:
            broker.fenced = change.fenced > 0
        if change.in_controlled_shutdown:
            broker.in_controlled_shutdown = change.in_controlled_shutdown > 0
        version = found[1]
        if change.log_dirs:
            broker.log_dirs, version = change.log_dirs, max(version, LOG_DIRS_VERSION)
        if change.cordoned_log_dirs is not None:
            broker.cordoned_log_dirs, version = change.cordoned_log_dirs, max(version, CORDONED_VERSION)
        self._live["broker", change.broker_id] = broker, version

    def _set_fenced(self, broker_id: int, fenced: bool) -> None:
        found = self._live.get(("broker", broker_id))
        if found is not None:
            broker = copy.copy(found[0])
            assert isinstance(broker, m.RegisterBrokerRecord)
            broker.fenced = fenced
            self._live["broker", broker_id] = broker, found[1]


def snapshot_name(end_offset: int, epoch: int) -> str:
    """The file name of the state below end_offset, whose last record is of this leader epoch."""
    return f"{end_offset:020d}-{epoch:010d}.checkpoint"


def write_snapshot(
    files: FileSystem,
    path: str,
    records: Sequence[Versioned],
    *,
    epoch: int,
    timestamp_ms: int,
    voters: Iterable[tuple[ControlRecordType, bytes]],
) -> None:
    """Write a snapshot file, atomically. timestamp_ms: of the last record in the state. voters: KRaft's own records of
    the log (KRAFT_VERSION, KRAFT_VOTERS), none before kraft.version 1. Raises LogError.
    """
    header = m.SnapshotHeaderRecord(last_contained_log_timestamp=timestamp_ms).encode(version=0)
    first = [(ControlRecordType.SNAPSHOT_HEADER, header), *voters]
    content = bytearray(write_control_batch(first, timestamp=timestamp_ms, partition_leader_epoch=epoch))
    offset = len(first)
    for start in range(0, len(records), RECORDS_PER_BATCH):
        builder = BatchBuilder(base_offset=offset, partition_leader_epoch=epoch)
        for message, version in records[start : start + RECORDS_PER_BATCH]:
            builder.append(None, write_metadata_record(message, version), timestamp=timestamp_ms)
            offset += 1
        content += builder.build()
    footer = (ControlRecordType.SNAPSHOT_FOOTER, m.SnapshotFooterRecord().encode(version=0))
    content += write_control_batch([footer], timestamp=timestamp_ms, base_offset=offset, partition_leader_epoch=epoch)
    files.write_atomically(path, bytes(content))

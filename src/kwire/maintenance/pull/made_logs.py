"""Logs of coordinators' topics that the account may not read, made from what admin APIs say of their contents."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping, Sequence

from kwire.client.cluster import Cluster, Topic
from kwire.identifiers import TopicPartition
from kwire.maintenance.pull import coordinators
from kwire.maintenance.pull.cluster import Bounds, PulledTopic
from kwire.maintenance.pull.coordinators import Described, Value
from kwire.maintenance.pull.manifest import now
from kwire.maintenance.pull.state import CopyState
from kwire.maintenance.pull.target import Target

__all__ = ["MadeLogs"]


class MadeLogs:
    """The logs in `target` that are made from admin APIs."""

    def __init__(self, target: Target, state: CopyState) -> None:
        self._target, self._state = target, state
        self._values: dict[TopicPartition, dict[bytes, bytes]] = {}

    def keys_of(self, topics: Collection[str]) -> dict[str, Sequence[Collection[bytes]]]:
        """Return the keys in the logs of topics, by partition."""
        keys: dict[str, Sequence[Collection[bytes]]] = {}
        for name in topics:
            earlier = self._state.earlier_topic(name)
            self._read(name, coordinators.PARTITIONS if earlier is None else len(earlier.partitions))
            count = sum(topic == name for topic, _ in self._values)
            keys[name] = [frozenset(self._values[name, number]) for number in range(count)]
        return keys

    def write(self, described: Mapping[str, Described]) -> None:
        """Bring the logs of topics to what the admin APIs say. Topics that never had contents get no log."""
        for name, each in described.items():
            if any(each.values) or self._state.earlier_topic(name) is not None:
                self._write(name, each)

    def set_aside(self, cluster: Cluster, readable: Collection[str]) -> None:
        """Set aside the logs of topics that the account may read now."""
        for name in sorted(readable):
            topic, earlier = cluster.topics.get(name), self._state.earlier_topic(name)
            if topic is None or (earlier is not None and not earlier.made_from):
                continue
            for number in range(max(coordinators.PARTITIONS, len(() if earlier is None else earlier.partitions))):
                key = name, number
                if self._target.topic_id(key) in (None, topic.topic_id):
                    continue
                if end := self._target.set_aside(key):
                    self._state.happened("readable", key, end_offset=end)
            if self._state.earlier is not None:
                self._state.earlier.topics.pop(name, None)

    def _read(self, name: str, count: int) -> None:
        """Read what the copy has of a topic, once."""
        keys = [(name, number) for number in range(count)]
        if any(key in self._values for key in keys):
            return
        existing = {key for key in keys if self._target.topic_id(key) is not None}
        if existing:
            self._values |= {key: {} for key in keys}
            self._values |= coordinators.read_values(self._target.url, existing, self._target.options)

    def _write(self, name: str, described: Described) -> None:
        keys = [(name, number) for number in range(len(described.values))]
        topic_id = next(filter(None, map(self._target.topic_id, keys)), None) or uuid.uuid4()
        pulled = PulledTopic(
            topic=Topic(name=name, topic_id=topic_id, is_internal=True, partitions={}),
            configs=coordinators.CONFIGS,
            made_from=described.requests.apis,
        )
        self._target.set_config(name, pulled.log_config)
        if name not in self._state.topics:
            self._read(name, len(keys))
        for key, values in zip(keys, described.values, strict=True):
            self._append(key, topic_id, values, described.kept)
        self._state.topics[name] = pulled

    def _append(
        self, key: TopicPartition, topic_id: uuid.UUID, values: Mapping[bytes, Value], kept: Collection[bytes]
    ) -> None:
        copies = self._state.copies
        if key not in copies:
            bounds = Bounds(log_start_offset=0, high_watermark=0)
            copies[key] = self._target.copy(key, bounds, topic_id=topic_id, now_ms=now())
        copy, written = copies[key], self._values.setdefault(key, {})
        end = copy.log.log_end_offset
        data = coordinators.changes(written, values, kept, base_offset=end, now_ms=now())
        self._state.copied_bytes += copy.append(memoryview(data), up_to=None, now_ms=now())
        copy.high_watermark = copy.log.log_end_offset
        self._target.appended(key)

"""How far a streaming query has read, and its form in checkpoints. Standard library only.

    {"orders": {"0": 23, "1": 42}, "orders#JbGZqP0dQ8eEzgYVd3mC7g": {}, "#kafka-log": {}}

For each topic and partition the next offset to read, as Spark's Kafka source writes it. A topic that was deleted and
created again has the same name and other offsets, so the id of each topic is recorded too: as a name that no topic can
have, with no partitions. In the same way the format that made the checkpoint is: the offsets of a log directory may be
others than those of a cluster. Whatever reads the form of Spark's Kafka source (topic -> partition -> offset), earlier
releases of kwire included, reads this one and finds the same offsets. Spark gives a Python source no other place: it
keeps what the source reports as its offset, and does not say where the checkpoint is.
Source: Spark's JsonUtils.partitionOffsets; Kafka's Topic.validate (letters, digits, `.`, `_` and `-`) and Uuid.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from json import dumps

from kwire.errors import OptionError
from kwire.spark.options.topics import TopicPartition
from kwire.storage.checkpoints import parse_uuid, render_uuid

__all__ = ["Json", "Offsets", "Position", "TopicIds"]

Json = dict[str, dict[str, int]]
Offsets = dict[TopicPartition, int]
TopicIds = dict[str, uuid.UUID]

ID_MARK = "#"


@dataclass(frozen=True, slots=True)
class Position:
    """The next offset of each partition, and the ids of their topics as far as they are known (from Kafka 2.8 on)."""

    offsets: Offsets
    topic_ids: TopicIds = field(default_factory=dict)

    @classmethod
    def parse(cls, json: Mapping[str, Mapping[str, int]], source: str | None = None) -> Position:
        """The position in a checkpoint, with or without topic ids.

        source: the format that reads it; None for any. Raises Malformed, OptionError for the checkpoint of another one.
        """
        offsets: Offsets = {}
        topic_ids: TopicIds = {}
        for name, partitions in json.items():
            topic, mark, value = name.partition(ID_MARK)
            if not mark:
                offsets.update({(topic, int(partition)): offset for partition, offset in partitions.items()})
            elif topic:
                topic_ids[topic] = parse_uuid(value)
            elif source is not None and value != source:
                there = {name: offsets for name, offsets in json.items() if ID_MARK not in name}
                raise OptionError(
                    f"the checkpoint is that of a query on {value}, and this query is on {source}: set another "
                    f"checkpointLocation. If the offsets are those of the same topics, set startingOffsets too: "
                    f"{dumps(there)}"
                )
        return cls(offsets, topic_ids)

    def render(self, source: str | None = None) -> Json:
        """The position as it stands in a checkpoint of a format; topics, partitions and ids are sorted."""
        found: Json = {}
        for (topic, partition), offset in sorted(self.offsets.items()):
            found.setdefault(topic, {})[str(partition)] = offset
        there = list(found)
        found |= {
            f"{topic}{ID_MARK}{render_uuid(self.topic_ids[topic])}": {} for topic in there if topic in self.topic_ids
        }
        return found if source is None else {**found, f"{ID_MARK}{source}": {}}

    def recreated(self, topic_ids: Mapping[str, uuid.UUID]) -> set[str]:
        """The topics of this position that have another id by now."""
        return {topic for topic, known in self.topic_ids.items() if topic_ids.get(topic, known) != known}

    def without(self, topics: Iterable[str]) -> Position:
        """The same position, as if these topics had never been read."""
        left_out = set(topics)
        return Position(
            {key: offset for key, offset in self.offsets.items() if key[0] not in left_out},
            {topic: known for topic, known in self.topic_ids.items() if topic not in left_out},
        )

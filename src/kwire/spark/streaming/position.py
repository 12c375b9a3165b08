"""The position of a streaming query, and its form in checkpoints. Standard library only.

    {"orders": {"0": 23, "1": 42}, "orders#JbGZqP0dQ8eEzgYVd3mC7g": {}, "#kafka-log": {}}

The next offset of each partition is stored as Spark's Kafka source stores it. Two entries without partitions are added,
under names that no topic can have: the id of each topic, since a topic that is deleted and created again has the same
name and different offsets, and the format of the source, since offsets in a log directory and in a cluster can differ.
Readers of Spark's form (topic -> partition -> offset), earlier releases of kwire included, find the same offsets. Spark
gives a Python source no other storage: it keeps the reported offset and hides the checkpoint's location.
Source: Spark's JsonUtils.partitionOffsets; Kafka's Topic.validate (letters, digits, `.`, `_` and `-`) and Uuid.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from json import dumps

from kwire.errors import OptionError
from kwire.identifiers import TopicPartition, parse_uuid, render_uuid

__all__ = ["Json", "Offsets", "Position", "TopicIds"]

Json = dict[str, dict[str, int]]
Offsets = dict[TopicPartition, int]
TopicIds = dict[str, uuid.UUID]

ID_MARK = "#"


@dataclass(frozen=True, slots=True)
class Position:
    """The next offset of each partition, and the ids of topics where they are known (Kafka 2.8 and later)."""

    offsets: Offsets
    topic_ids: TopicIds = field(default_factory=dict)

    @classmethod
    def parse(cls, json: Mapping[str, Mapping[str, int]], source: str | None = None) -> Position:
        """Parse the position in a checkpoint, with or without topic ids.

        source: the format that reads it, or None to accept any. Raises Malformed; OptionError for a checkpoint of
        another format.
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
                starting = {name: offsets for name, offsets in json.items() if ID_MARK not in name}
                raise OptionError(
                    f"the checkpoint belongs to a query on {value}, and this query is on {source}: set another "
                    f"checkpointLocation; if the offsets are valid here too, also set startingOffsets: "
                    f"{dumps(starting)}"
                )
        return cls(offsets, topic_ids)

    def render(self, source: str | None = None) -> Json:
        """Render the position for a checkpoint of a format, with sorted topics, partitions and ids."""
        found: Json = {}
        for (topic, partition), offset in sorted(self.offsets.items()):
            found.setdefault(topic, {})[str(partition)] = offset
        topics = list(found)
        found |= {
            f"{topic}{ID_MARK}{render_uuid(self.topic_ids[topic])}": {} for topic in topics if topic in self.topic_ids
        }
        return found if source is None else {**found, f"{ID_MARK}{source}": {}}

    def recreated(self, topic_ids: Mapping[str, uuid.UUID]) -> set[str]:
        """Return the topics of this position whose id has changed."""
        return {topic for topic, known in self.topic_ids.items() if topic_ids.get(topic, known) != known}

    def without(self, topics: Iterable[str]) -> Position:
        """Return a copy without these topics."""
        excluded = set(topics)
        return Position(
            {key: offset for key, offset in self.offsets.items() if key[0] not in excluded},
            {topic: known for topic, known in self.topic_ids.items() if topic not in excluded},
        )

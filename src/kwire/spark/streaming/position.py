"""The position of a streaming query, and its form in checkpoints. Standard library only.

    {"orders": {"0": 23, "1": 42}, "orders#JbGZqP0dQ8eEzgYVd3mC7g": {}, "#kafka-log": {},
     "#start={\"orders\":{\"0\":0,\"1\":0}}": {}}

The next offset of each partition is stored as Spark's Kafka source stores it. Entries without partitions are added,
under names that no topic can have: the id of each topic, since a topic that is deleted and created again has the same
name and different offsets; the format of the source, since offsets in a log directory and in a cluster can differ; and
in the end of the first micro-batch its start, which Spark asks for again when that micro-batch is repeated.
Readers of Spark's form (topic -> partition -> offset) find the same offsets. Spark gives a Python source no other
storage: it keeps the reported offset and hides the checkpoint's location.
Source: Spark's JsonUtils.partitionOffsets; Kafka's Topic.validate (letters, digits, `.`, `_` and `-`) and Uuid.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from json import JSONDecodeError, dumps, loads

from kwire.errors import Malformed, OptionError
from kwire.identifiers import TopicPartition, parse_uuid, render_uuid

__all__ = ["Json", "Offsets", "Position", "TopicIds"]

Json = dict[str, dict[str, int]]
Offsets = dict[TopicPartition, int]
TopicIds = dict[str, uuid.UUID]

ID_MARK = "#"
START_MARK = "start="


@dataclass(frozen=True, slots=True)
class Position:
    """The next offset of each partition, and the ids of topics where they are known (Kafka 2.8 and later).

    first_start: in the end of a query's first micro-batch, the offsets where that micro-batch starts.
    """

    offsets: Offsets
    topic_ids: TopicIds = field(default_factory=dict)
    first_start: Offsets | None = None

    @classmethod
    def parse(cls, json: Mapping[str, Mapping[str, int]], source: str | None = None) -> Position:
        """Parse the position in a checkpoint, with or without topic ids.

        source: the format that reads it, or None to accept any. Raises Malformed; OptionError for a checkpoint of
        another format.
        """
        offsets: Offsets = {}
        topic_ids: TopicIds = {}
        first_start: Offsets | None = None
        for name, partitions in json.items():
            topic, mark, value = name.partition(ID_MARK)
            if not mark:
                offsets.update({(topic, int(partition)): offset for partition, offset in partitions.items()})
            elif topic:
                topic_ids[topic] = parse_uuid(value)
            elif value.startswith(START_MARK):
                first_start = _parse_start(value.removeprefix(START_MARK))
            elif source is not None and value != source:
                starting = {name: offsets for name, offsets in json.items() if ID_MARK not in name}
                raise OptionError(
                    f"the checkpoint belongs to a query on {value}, and this query is on {source}: set another "
                    f"checkpointLocation; if the offsets are valid here too, also set startingOffsets: "
                    f"{dumps(starting)}"
                )
        return cls(offsets, topic_ids, first_start)

    def render(self, source: str | None = None) -> Json:
        """Render the position for a checkpoint of a format, with sorted topics, partitions and ids."""
        rendered = _by_topic(self.offsets)
        topics = list(rendered)
        rendered |= {
            f"{topic}{ID_MARK}{render_uuid(self.topic_ids[topic])}": {} for topic in topics if topic in self.topic_ids
        }
        if source is not None:
            rendered[f"{ID_MARK}{source}"] = {}
        if self.first_start is not None:
            start = dumps(_by_topic(self.first_start), separators=(",", ":"))
            rendered[f"{ID_MARK}{START_MARK}{start}"] = {}
        return rendered

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


def _by_topic(offsets: Offsets) -> Json:
    offsets_by_topic: Json = {}
    for (topic, partition), offset in sorted(offsets.items()):
        offsets_by_topic.setdefault(topic, {})[str(partition)] = offset
    return offsets_by_topic


def _parse_start(text: str) -> Offsets:
    try:
        return Position.parse(loads(text)).offsets
    except (AttributeError, JSONDecodeError, TypeError, ValueError):
        raise Malformed(f"checkpoint: '{ID_MARK}{START_MARK}{text[:80]}' has no offsets by topic", 0) from None

"""What the members of a consumer group read together, and the topics as the group last saw them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

from kwire.broker.groups.consumer_member import ConsumerMember
from kwire.broker.topics import Topic, TopicRegistry

__all__ = ["ResolvedRegex", "TopicMetadata", "member_topics", "subscribed_topics", "topics_metadata"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicMetadata:
    """A topic as an assignor sees it. rack: of this one node, so of every partition's replicas; None without one."""

    topic_id: UUID
    name: str
    partition_count: int
    rack: str | None = None

    @classmethod
    def of(cls, topic: Topic, rack: str | None) -> TopicMetadata:
        """The topic as it is now."""
        return cls(topic_id=topic.topic_id, name=topic.name, partition_count=len(topic.partitions), rack=rack)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedRegex:
    """The topics that matched when the topics were at that version (Kafka's metadata offset), and the time of it."""

    topics: frozenset[str]
    version: int
    timestamp_ms: int


def member_topics(member: ConsumerMember, regexes: Mapping[str, ResolvedRegex]) -> frozenset[str]:
    """All topic names that a member subscribes to: those it names, and those its regular expression found."""
    resolved = regexes.get(member.topic_regex) if member.topic_regex else None
    return member.topic_names if resolved is None else member.topic_names | resolved.topics


def subscribed_topics(members: Iterable[ConsumerMember], regexes: Mapping[str, ResolvedRegex]) -> Counter[str]:
    """How many members subscribe to each topic name, whether there is such a topic or not."""
    return Counter(name for member in members for name in member_topics(member, regexes))


def topics_metadata(names: Iterable[str], topics: TopicRegistry, rack: str | None) -> dict[str, TopicMetadata]:
    """Those of the topics that exist, by name in order."""
    found = {}
    for name in sorted(names):
        topic = topics.get(name)
        if topic is not None:
            found[name] = TopicMetadata.of(topic, rack)
    return found

"""What the members of a consumer group read together, and the topics as the group last saw them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from kwire.broker.groups.consumer_member import ConsumerMember
from kwire.broker.topics import TopicRegistry
from kwire.internal_topics.groups_state import ResolvedRegex, TopicMetadata

__all__ = ["member_topics", "subscribed_topics", "topics_metadata"]


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
            found[name] = TopicMetadata(
                topic_id=topic.topic_id, name=name, partition_count=len(topic.partitions), rack=rack
            )
    return found

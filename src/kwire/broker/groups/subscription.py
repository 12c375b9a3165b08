"""The topics that the members of a consumer group subscribe to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from kwire.broker.groups.consumer_member import ConsumerMember
from kwire.broker.topics import TopicRegistry
from kwire.internal_topics.groups_state import ResolvedRegex, TopicMetadata

__all__ = ["member_topics", "subscribed_topics", "topics_metadata"]


def member_topics(member: ConsumerMember, regexes: Mapping[str, ResolvedRegex]) -> frozenset[str]:
    """Return the topic names that a member subscribes to, by name or by regular expression."""
    resolved = regexes.get(member.topic_regex) if member.topic_regex else None
    return member.topic_names if resolved is None else member.topic_names | resolved.topics


def subscribed_topics(members: Iterable[ConsumerMember], regexes: Mapping[str, ResolvedRegex]) -> Counter[str]:
    """Return the number of members that subscribe to each topic name; the topics need not exist."""
    return Counter(name for member in members for name in member_topics(member, regexes))


def topics_metadata(names: Iterable[str], topics: TopicRegistry, rack: str | None) -> dict[str, TopicMetadata]:
    """Return the metadata of existing topics, in order of their names."""
    found = {}
    for name in sorted(names):
        topic = topics.get(name)
        if topic is not None:
            found[name] = TopicMetadata(
                topic_id=topic.topic_id, name=name, partition_count=len(topic.partitions), rack=rack
            )
    return found

"""Configs that the Kafka release of a new metadata log does not accept.

Brokers validate the topic configs in the metadata log when they load their logs. Kafka 4 does not start with a value
that it does not accept, and ignores names that it no longer has. Kafka 3.9 starts with names that it does not know yet,
but refuses every later change of such a topic.
Source: LogConfig 3.9.1 and 4.4.0; KIP-724, KIP-1030.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import msgspec

from kwire.internal_topics.enums import ConfigResource
from kwire.internal_topics.metadata_records import VersionedMessage
from kwire.internal_topics.metadata_versions import RELEASES, MetadataRelease

__all__ = ["accepted_configs", "accepted_records"]

KAFKA_4 = RELEASES["4.0"]
SEGMENT_BYTES, BROKER_SEGMENT_BYTES, SMALLEST_SEGMENT_BYTES = "segment.bytes", "log.segment.bytes", 1 << 20
REMOVED = frozenset({"message.downconversion.enable", "message.format.version", "message.timestamp.difference.max.ms"})
ADDED = frozenset(
    {
        "errors.deadletterqueue.group.enable",
        "internal.segment.bytes",
        "max.decompressed.message.bytes",
        "remote.copy.lag.bytes",
        "remote.copy.lag.ms",
    }
)


def accepted_configs(
    configs: Mapping[str, Mapping[str, str]], release: MetadataRelease, notes: list[str]
) -> dict[str, dict[str, str]]:
    """Return the configs of topics as a release accepts them. notes: receives what is changed, and what Kafka 4 needs.

    configs: by topic and name.
    """
    is_4 = release.level >= KAFKA_4.level
    unknown = REMOVED if is_4 else ADDED
    small, dropped = list[str](), defaultdict[str, list[str]](list)
    accepted = {}
    for topic, given in configs.items():
        accepted[topic] = {name: value for name, value in given.items() if name not in unknown}
        for name in given.keys() & unknown:
            dropped[name].append(topic)
        if is_small(given.get(SEGMENT_BYTES)):
            small.append(topic)
            if is_4:
                accepted[topic][SEGMENT_BYTES] = str(SMALLEST_SEGMENT_BYTES)
    for name, topics in sorted(dropped.items()):
        notes.append(f"{name} of {listed(topics)} is left out: Kafka {release.name} does not know it")
    if small and is_4:
        raised = f"{SEGMENT_BYTES} of {listed(small)} is raised to {SMALLEST_SEGMENT_BYTES}"
        notes.append(f"{raised}: Kafka 4 does not start with less")
    elif small:
        notes.append(
            f"Kafka 4 does not start with {SEGMENT_BYTES} of {listed(small)}, which is below {SMALLEST_SEGMENT_BYTES}; "
            f"raise it before, or set --kafka-version {KAFKA_4.name} or above"
        )
    return accepted


def accepted_records(
    records: Sequence[VersionedMessage], release: MetadataRelease, notes: list[str]
) -> list[VersionedMessage]:
    """Return other records of a metadata log, with the configs of brokers as a release accepts them."""
    from kwire.messages import ConfigRecord

    accepted: list[VersionedMessage] = []
    for message, version in records:
        if (
            isinstance(message, ConfigRecord)
            and message.resource_type == ConfigResource.BROKER.value
            and message.name == BROKER_SEGMENT_BYTES
            and is_small(message.value)
        ):
            if release.level >= KAFKA_4.level:
                message = msgspec.structs.replace(message, value=str(SMALLEST_SEGMENT_BYTES))
                notes.append(f"{BROKER_SEGMENT_BYTES} is raised to {SMALLEST_SEGMENT_BYTES}: Kafka 4 ignores less")
            else:
                notes.append(f"Kafka 4 ignores {BROKER_SEGMENT_BYTES} below {SMALLEST_SEGMENT_BYTES}; raise it before")
        accepted.append((message, version))
    return accepted


def is_small(value: str | None) -> bool:
    """Return whether a value of segment.bytes is below what Kafka 4 accepts; False for what is not a number."""
    return value is not None and value.strip().isdecimal() and int(value) < SMALLEST_SEGMENT_BYTES


def listed(topics: Sequence[str]) -> str:
    """Return names of topics for a message."""
    names = ", ".join(sorted(topics)[:10])
    more = f" and {len(topics) - 10} more" if len(topics) > 10 else ""
    return f"{'topics' if len(topics) > 1 else 'topic'} {names}{more}"

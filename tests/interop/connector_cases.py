"""Queries for Spark's Kafka connector and `kafka-live` on the topics of connector_topics."""

from __future__ import annotations

import json
from collections.abc import Mapping

from tests.interop.connector_topics import FIRST_MS, MANY

__all__ = [
    "EARLIEST",
    "FAILS",
    "IMPATIENT",
    "NOTHING",
    "READS",
    "REFUSED",
    "STREAMS",
    "STREAM_FAILS",
    "Options",
]

Options = Mapping[str, str]


def at(**topics: dict[int, int]) -> str:
    """`{"t": {"0": 5}}`; of topics whose names are words."""
    return json.dumps({name: {str(number): value for number, value in each.items()} for name, each in topics.items()})


HEADERS = {"includeHeaders": "true"}
COMMITTED = {"kafka.isolation.level": "read_committed"}
LATEST = {"startingOffsetsByTimestampStrategy": "latest"}
AT = str(FIRST_MS + 50)
MANY_FIRST = at(many={0: 10, 1: -2, 2: 3, 3: 0})
MANY_LAST = at(many={0: 500, 1: -1, 2: 7, 3: -1})

# What both read alike, row for row and column for column.
READS: dict[str, Options] = {
    "everything": {"subscribe": "mixed"},
    "headers": {"subscribe": "mixed", **HEADERS},
    "no headers": {"subscribe": "mixed", "includeHeaders": "false"},
    "several topics": {"subscribe": "mixed, many,appended", **HEADERS},
    "LogAppendTime": {"subscribe": "appended"},
    "assign": {"assign": '{"mixed":[1,2],"many":[0]}', **HEADERS},
    "assign one": {"assign": '{"many":[2]}'},
    "pattern": {"subscribePattern": r"m.*y|shop\.(eu|us)"},
    "pattern of part of a name": {"subscribePattern": r"shop\.e"},
    "pattern anchored": {"subscribePattern": r"^shop\..*$"},
    "pattern in another case": {"subscribePattern": r"(?i)SHOP"},
    "pattern of nothing": {"subscribePattern": "nothing at all"},
    "pattern leaves internal topics out": {"subscribePattern": "_state|_offsets|^appended$"},
    "keys in another case": {"SUBSCRIBE": "mixed", "INCLUDEheaders": "TRUE", "STARTINGoffsets": "EARLIEST"},
    "startingOffsets earliest": {"subscribe": "deleted", "startingOffsets": "earliest"},
    "startingOffsets": {"subscribe": "many", "startingOffsets": MANY_FIRST},
    "startingOffsets at the end": {"subscribe": "many", "startingOffsets": at(many=dict(enumerate(MANY)))},
    "endingOffsets latest": {"subscribe": "many", "endingOffsets": "latest"},
    "endingOffsets": {"subscribe": "many", "endingOffsets": MANY_LAST},
    "both offsets": {"subscribe": "many", "startingOffsets": MANY_FIRST, "endingOffsets": MANY_LAST},
    "nothing in between": {
        "subscribe": "many",
        "startingOffsets": MANY_FIRST,
        "endingOffsets": MANY_FIRST.replace("-2", "0"),
    },
    "deleted from the front": {"subscribe": "deleted"},
    "explicit behind what was deleted": {"subscribe": "deleted", "startingOffsets": at(deleted={0: 12, 1: -2})},
    "startingTimestamp": {"subscribe": "many", "startingTimestamp": AT, **LATEST},
    "startingTimestamp before all": {"assign": '{"many":[0,1,2]}', "startingTimestamp": "0"},
    "startingTimestamp out of order": {"assign": '{"mixed":[0,1,3]}', "startingTimestamp": str(FIRST_MS + 3001)},
    "startingOffsetsByTimestamp": {
        "assign": '{"many":[0,1]}',
        "startingOffsetsByTimestamp": at(many={0: FIRST_MS + 900, 1: FIRST_MS + 99}),
    },
    "startingOffsetsByTimestamp latest": {
        "assign": '{"many":[0,1]}',
        "startingOffsetsByTimestamp": at(many={0: FIRST_MS + 5000, 1: FIRST_MS}),
        **LATEST,
    },
    "endingTimestamp": {"subscribe": "many", "endingTimestamp": AT},
    "endingTimestamp after all": {"subscribe": "many", "endingTimestamp": str(2**62)},
    "endingTimestamp before all": {"subscribe": "many", "endingTimestamp": "0"},
    "endingOffsetsByTimestamp": {
        "assign": '{"many":[0,1]}',
        "endingOffsetsByTimestamp": at(many={0: FIRST_MS + 900, 1: FIRST_MS + 1}),
    },
    "both timestamps": {"assign": '{"many":[0,1]}', "startingTimestamp": str(FIRST_MS + 20), "endingTimestamp": AT},
    "both timestamps by partition": {
        "assign": '{"many":[0,1]}',
        "startingOffsetsByTimestamp": at(many={0: FIRST_MS + 9, 1: FIRST_MS + 99}),
        "endingOffsetsByTimestamp": at(many={0: FIRST_MS + 12, 1: FIRST_MS + 2**40}),
    },
    "timestamp wins over offsets": {
        "assign": '{"many":[0]}',
        "startingTimestamp": AT,
        "startingOffsetsByTimestamp": at(many={0: 7}),
        "startingOffsets": at(many={0: 7}),
    },
    "timestamps by partition win over offsets": {
        "assign": '{"many":[0]}',
        "startingOffsetsByTimestamp": at(many={0: FIRST_MS + 999}),
        "startingOffsets": at(many={0: 7}),
    },
    "timestamp of LogAppendTime": {"subscribe": "appended", "startingTimestamp": AT},
    "read_uncommitted": {"subscribe": "tx", "kafka.isolation.level": "read_uncommitted"},
    "read_committed": {"subscribe": "tx", **COMMITTED},
    "open transaction, uncommitted": {"subscribe": "open"},
    "open transaction, committed": {"subscribe": "open", **COMMITTED},
    "committed between offsets": {
        "subscribe": "tx",
        **COMMITTED,
        "startingOffsets": at(tx={0: 3, 1: 4}),
        "endingOffsets": at(tx={0: 17, 1: 9}),
    },
    "ends on a marker": {"subscribe": "tx", "endingOffsets": at(tx={0: 5, 1: -1})},
    "committed with timestamps": {"subscribe": "open", **COMMITTED, "startingTimestamp": str(FIRST_MS)},
    "compacted": {"subscribe": "compacted", **HEADERS},
    "compacted, between gaps": {
        "subscribe": "compacted",
        "startingOffsets": at(compacted={0: 1}),
        "endingOffsets": at(compacted={0: 333}),
    },
    "compacted in splits": {"subscribe": "compacted", "maxRecordsPerPartition": "37"},
    "transactions in splits": {"subscribe": "tx", "minPartitions": "11", **COMMITTED},
    "minPartitions": {"subscribe": "many", "minPartitions": "10"},
    "minPartitions 7": {"subscribe": "many", "minPartitions": "7"},
    "minPartitions below": {"assign": '{"many":[0,1,2]}', "minPartitions": "2"},
    "minPartitions of a few": {"assign": '{"many":[2]}', "minPartitions": "5"},
    "minPartitions above": {"assign": '{"many":[2]}', "minPartitions": "50"},
    "maxRecordsPerPartition": {"subscribe": "many", "maxRecordsPerPartition": "33"},
    "maxRecordsPerPartition 1": {"assign": '{"many":[2]}', "maxRecordsPerPartition": "1"},
    "maxRecordsPerPartition above": {"assign": '{"many":[0,1]}', "maxRecordsPerPartition": "100000"},
    "both limits": {"subscribe": "many", "maxRecordsPerPartition": "333", "minPartitions": "9"},
    "both limits, few": {"subscribe": "many", "maxRecordsPerPartition": "100", "minPartitions": "2"},
    "limits of streams do nothing": {
        "subscribe": "many",
        "maxOffsetsPerTrigger": "5",
        "minOffsetsPerTrigger": "3",
        "maxTriggerDelay": "5s",
    },
    "data loss is not minded": {"subscribe": "deleted", "failOnDataLoss": "false"},
    "ways of asking": {
        "subscribe": "many",
        "fetchOffset.numRetries": "1",
        "fetchOffset.retryIntervalMs": "50",
        "kafkaConsumer.pollTimeoutMs": "30000",
        "groupIdPrefix": "mine",
        "kafka.group.id": "ours",
        "kafka.client.id": "me",
        "kafka.fetch.max.bytes": "1000",
        "kafka.max.partition.fetch.bytes": "500",
        "kafka.fetch.min.bytes": "1",
        "kafka.request.timeout.ms": "20000",
    },
    "small fetches": {"subscribe": "mixed", "kafka.max.poll.records": "1", "kafka.fetch.max.bytes": "1", **HEADERS},
    "out of range, below, not minded": {
        "subscribe": "deleted",
        "startingOffsets": at(deleted={0: 3, 1: 0}),
        "failOnDataLoss": "false",
    },
}
NOTHING = (
    "pattern of nothing",
    "startingOffsets at the end",
    "nothing in between",
    "endingTimestamp before all",
    "startingOffsets latest",
    "default is latest",
)
IMPATIENT = {"fetchOffset.retryIntervalMs": "10"}

# What both refuse before they ask a broker, and words that are in both messages.
REFUSED: dict[str, tuple[Options, str]] = {
    "no choice of topics": ({}, "One of the following options must be specified for Kafka source"),
    "two choices": (
        {"subscribe": "many", "assign": '{"many":[0]}'},
        "Only one of the following options can be specified",
    ),
    "no topic": ({"subscribe": " , "}, "No topics to subscribe to as specified value for option 'subscribe' is ' , '"),
    "assign that is no JSON object": (
        {"assign": "many"},
        "No topicpartitions to assign as specified value for option 'assign'",
    ),
    "assign that is broken": (
        {"assign": '{"many":0}'},
        'expected e.g. {"topicA":[0,1],"topicB":[0,1]}, got {"many":0}',
    ),
    "empty pattern": ({"subscribePattern": " "}, "Pattern to subscribe is empty"),
    "pattern that is none": ({"subscribePattern": "a(b"}, "a(b"),
    "starts at latest": (
        {"subscribe": "many", "startingOffsets": "latest"},
        "starting offset can't be latest for batch queries on Kafka",
    ),
    "starts at -1": (
        {"subscribe": "many", "startingOffsets": at(many={0: -1, 1: 0, 2: 0, 3: 0})},
        "startingOffsets for many-0 can't be latest for batch queries on Kafka",
    ),
    "ends at earliest": (
        {"subscribe": "many", "endingOffsets": "earliest"},
        "ending offset can't be earliest for batch queries on Kafka",
    ),
    "ends at -2": (
        {"subscribe": "many", "endingOffsets": at(many={0: -2, 1: 0, 2: 0, 3: 0})},
        "for many-0 can't be earliest for batch queries on Kafka",
    ),
    "offsets that are none": (
        {"subscribe": "many", "startingOffsets": "soon"},
        'e.g. {"topicA":{"0":23,"1":-1},"topicB":{"0":-2}}, got soon',
    ),
    "different partitions": (
        {"subscribe": "many", "startingOffsets": MANY_FIRST, "endingOffsets": at(many={0: 5})},
        "The specified start offset and end offset should have the same topic-partitions",
    ),
    "start behind end": (
        {"assign": '{"many":[0]}', "startingOffsets": at(many={0: 9}), "endingOffsets": at(many={0: 5})},
        "The specified start offset 9 is greater than the end offset 5 for topic many partition 0",
    ),
    "start behind end by times": (
        {
            "assign": '{"many":[0]}',
            "startingOffsetsByTimestamp": at(many={0: FIRST_MS + 9}),
            "endingOffsetsByTimestamp": at(many={0: FIRST_MS + 5}),
        },
        f"start timestamp {FIRST_MS + 9} is greater than the end timestamp {FIRST_MS + 5} for topic many partition 0",
    ),
    "timestamp that is none": (
        {"subscribe": "many", "startingTimestamp": "yesterday"},
        "expected a single long value, got yesterday",
    ),
    "ending timestamp that is none": (
        {"subscribe": "many", "endingTimestamp": "1.5"},
        "expected a single long value, got 1.5",
    ),
    "strategy that is none": (
        {"subscribe": "many", "startingTimestamp": AT, "startingOffsetsByTimestampStrategy": "earliest"},
        "earliest",
    ),
    "minPartitions 0": ({"subscribe": "many", "minPartitions": "0"}, "must be positive"),
    "minPartitions that is none": ({"subscribe": "many", "minPartitions": "x"}, ""),
    "maxRecordsPerPartition -1": ({"subscribe": "many", "maxRecordsPerPartition": "-1"}, "must be positive"),
    "min above max": (
        {"subscribe": "many", "minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "3"},
        "maxOffsetsPerTrigger",
    ),
    "failOnDataLoss that is none": ({"subscribe": "many", "failOnDataLoss": "maybe"}, "maybe"),
    "includeHeaders that is none": ({"subscribe": "many", "includeHeaders": "maybe"}, "maybe"),
    "auto.offset.reset": (
        {"subscribe": "many", "kafka.auto.offset.reset": "earliest"},
        "auto.offset.reset' is not supported",
    ),
    "key.deserializer": ({"subscribe": "many", "kafka.key.deserializer": "x"}, "key.deserializer' is not supported"),
    "value.deserializer": (
        {"subscribe": "many", "kafka.value.deserializer": "x"},
        "value.deserializer' is not supported",
    ),
    "enable.auto.commit": (
        {"subscribe": "many", "kafka.enable.auto.commit": "false"},
        "enable.auto.commit' is not supported",
    ),
    "interceptor.classes": (
        {"subscribe": "many", "kafka.interceptor.classes": "x"},
        "interceptor.classes' is not supported",
    ),
}
# What both fail at.
FAILS: dict[str, tuple[Options, str]] = {
    "topic that is not there": ({"subscribe": "nobody"}, ""),
    "one of two topics is not there": ({"subscribe": "many,nobody"}, ""),
    "offsets of some partitions": ({"subscribe": "many", "startingOffsets": at(many={0: 1})}, "many-1"),
    "offsets of too many partitions": (
        {"subscribe": "deleted", "startingOffsets": at(deleted={0: -2, 1: -2, 2: -2})},
        "deleted-2",
    ),
    "timestamps of some partitions": ({"subscribe": "many", "startingOffsetsByTimestamp": at(many={0: 1})}, "many-1"),
    "start behind end when resolved": (
        {"assign": '{"many":[0]}', "startingOffsets": at(many={0: 100}), "endingTimestamp": str(FIRST_MS + 5)},
        "The resolved start offset 100 is greater than the resolved end offset 5 for topic many partition 0",
    ),
    "nothing is that young": (
        {"subscribe": "many", "startingTimestamp": AT},
        f"No offset matched from request of topic-partition many-2 and timestamp {AT}",
    ),
    "nothing is that young, said": (
        {"subscribe": "many", "startingTimestamp": AT, "startingOffsetsByTimestampStrategy": "error"},
        "No offset matched from request of topic-partition many-2",
    ),
    "nothing is that young in a partition": (
        {"assign": '{"many":[0,1]}', "startingOffsetsByTimestamp": at(many={0: FIRST_MS + 5000, 1: FIRST_MS})},
        f"topic-partition many-0 and timestamp {FIRST_MS + 5000}",
    ),
    "out of range, below": ({"subscribe": "deleted", "startingOffsets": at(deleted={0: 3, 1: 0})}, ""),
    "out of range, above": ({"subscribe": "deleted", "startingOffsets": at(deleted={0: 31, 1: 0})}, "start offset 31"),
    "end above": (
        {"assign": '{"many":[2]}', "endingOffsets": at(many={2: 9}), "kafkaConsumer.pollTimeoutMs": "3000"},
        "",
    ),
    "isolation level that is none": ({"subscribe": "many", "kafka.isolation.level": "chaos"}, "isolation.level"),
}
EARLIEST = {"startingOffsets": "earliest"}
# Streams that take the same micro-batches.
STREAMS: dict[str, Options] = {
    "all at once": {"subscribe": "many", **EARLIEST},
    "headers": {"subscribe": "mixed", **EARLIEST, **HEADERS},
    "maxOffsetsPerTrigger": {"subscribe": "many", **EARLIEST, "maxOffsetsPerTrigger": "300"},
    "maxOffsetsPerTrigger 2": {"assign": '{"many":[2]}', **EARLIEST, "maxOffsetsPerTrigger": "2"},
    "and minPartitions": {"subscribe": "many", **EARLIEST, "maxOffsetsPerTrigger": "300", "minPartitions": "6"},
    "minOffsetsPerTrigger": {"subscribe": "many", **EARLIEST, "minOffsetsPerTrigger": "5000"},
    "startingOffsets": {"subscribe": "many", "startingOffsets": at(many={0: 900, 1: -2, 2: -1, 3: -2})},
    "startingOffsets latest": {"subscribe": "many", "startingOffsets": "latest"},
    "default is latest": {"subscribe": "many"},
    "startingTimestamp": {"assign": '{"many":[0,1]}', "startingTimestamp": AT},
    "startingTimestamp latest": {"subscribe": "many", "startingTimestamp": AT, **LATEST},
    "startingOffsetsByTimestamp": {
        "assign": '{"many":[0,1]}',
        "startingOffsetsByTimestamp": at(many={0: FIRST_MS + 990, 1: FIRST_MS + 98}),
    },
    "read_committed": {"subscribe": "open", **EARLIEST, **COMMITTED, "maxOffsetsPerTrigger": "7"},
    "read_uncommitted": {"subscribe": "tx", **EARLIEST, "maxOffsetsPerTrigger": "7"},
    "pattern": {"subscribePattern": "shop", **EARLIEST},
    "compacted": {"subscribe": "compacted", **EARLIEST, "maxOffsetsPerTrigger": "100"},
    "deleted from the front": {"subscribe": "deleted", **EARLIEST, "maxOffsetsPerTrigger": "10"},
}
STREAM_FAILS: dict[str, tuple[Options, str]] = {
    "endingOffsets": ({"subscribe": "many", "endingOffsets": "latest"}, "ending offset not valid in streaming queries"),
    "endingOffsetsByTimestamp": (
        {"subscribe": "many", "endingOffsetsByTimestamp": at(many={0: 1})},
        "not valid in streaming queries",
    ),
    "topic that is not there": ({"subscribe": "nobody"}, ""),
    "offsets of some partitions": ({"subscribe": "many", "startingOffsets": at(many={0: 3})}, "many-1"),
    "nothing is that young": (
        {"subscribe": "many", "startingTimestamp": AT},
        f"No offset matched from request of topic-partition many-2 and timestamp {AT}",
    ),
    "out of range, below": ({"subscribe": "deleted", "startingOffsets": at(deleted={0: 3, 1: 0})}, ""),
}

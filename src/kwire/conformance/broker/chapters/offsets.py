"""ListOffsets and OffsetForLeaderEpoch."""

from __future__ import annotations

from typing import Any

from kwire.conformance.broker.bench import Bench, Topic
from kwire.conformance.broker.chapters.data import TIME, batch, list_offset, produce
from kwire.conformance.broker.chapters.tables import api_versions, released
from kwire.conformance.broker.checks import BrokerCheck, Chapter, Observe
from kwire.conformance.broker.requests import error_name

__all__ = ["chapter"]

chapter = Chapter("ListOffsets and leader epochs")
USES = {"ListOffsets": 1, "Produce": -1, "Topics": -1}


def _filled(bench: Bench) -> Topic:
    topic = bench.topic()
    produce(bench, topic, batch(b"a", b"b"))
    produce(bench, topic, batch(b"c"))
    return topic


def _found(part: Any) -> dict[str, Any]:
    return {"error": error_name(part.error_code), "offset": part.offset, "timestamp": part.timestamp}


SPECIAL = (
    ("001", -1, 1, "The timestamp -1 is the end of the log", "ListOffsetsRequest"),
    ("002", -2, 1, "The timestamp -2 is the start of the log", "ListOffsetsRequest"),
    ("003", -3, 7, "The timestamp -3 is the record with the largest timestamp", "KIP-734"),
    ("004", -4, 8, "The timestamp -4 is the first offset on local disks", "KIP-405"),
    ("005", -5, 9, "The timestamp -5 is the last offset in remote storage", "KIP-405"),
    ("006", -6, 11, "The timestamp -6 is the first offset not yet in remote storage", "KIP-405"),
    ("007", -7, 1, "The timestamp -7 means nothing", "ListOffsetsRequest"),
    ("008", TIME, 1, "A timestamp that a record has is found", "KIP-32"),
    ("009", TIME + 1, 1, "A timestamp inside a batch is found", "KIP-32"),
    ("010", TIME - 5000, 1, "A timestamp before all records is the first record", "KIP-32"),
    ("011", TIME + 5000, 1, "A timestamp after all records is nothing", "KIP-32"),
)


def _special(timestamp: int) -> Observe:
    return lambda bench: _found(list_offset(bench, _filled(bench), timestamp))


for _number, _timestamp, _lowest, _title, _source in SPECIAL:
    chapter.add(
        BrokerCheck(
            id=f"LIST-OFFSETS-{_number}",
            chapter=chapter.name,
            title=_title,
            source=_source,
            steps=("Produce three records in two batches.", f"Send ListOffsets with the timestamp {_timestamp}."),
            observe=_special(_timestamp),
            uses={**USES, "ListOffsets": _lowest},
            since=released("ListOffsets", _lowest)["since"],
        )
    )


@chapter.check("LIST-OFFSETS-020", "KIP-320", uses={**USES, "ListOffsets": 4})
def leader_epochs(bench: Bench) -> Any:
    """A leader epoch above that of the broker is unknown.

    Send ListOffsets with current_leader_epoch 0, then with 5.
    The first has leader epoch 0; the second has UNKNOWN_LEADER_EPOCH.
    """
    topic = _filled(bench)
    parts = [list_offset(bench, topic, -1, current_leader_epoch=epoch) for epoch in (0, 5)]
    return {"parts": [{**_found(each), "leader epoch": each.leader_epoch} for each in parts]}


@chapter.check("LIST-OFFSETS-021", "ListOffsetsRequest", uses={**USES, "ListOffsets": 2})
def isolation(bench: Bench) -> Any:
    """With isolation_level 1 the end is the last stable offset.

    Send ListOffsets with the timestamp -1 and isolation_level 1 to a log without transactions.
    The offset is the end of the log.
    """
    return _found(list_offset(bench, _filled(bench), -1, isolation_level=1))


@chapter.check("LIST-OFFSETS-022", "ListOffsetsRequest", uses=USES)
def empty_log(bench: Bench) -> Any:
    """An empty log begins and ends at 0.

    Send ListOffsets with the timestamps -1, -2 and one of a record, for a new topic.
    Both ends are 0; there is no record.
    """
    topic = bench.topic()
    return {"parts": [_found(list_offset(bench, topic, each)) for each in (-1, -2, TIME)]}


@chapter.check("LIST-OFFSETS-023", "KIP-107", uses={**USES, "DeleteRecords": -1})
def after_deletion(bench: Bench) -> Any:
    """Deleted records move the start of the log.

    Produce three records, delete those before offset 2, and send ListOffsets with the timestamp -2.
    The offset is 2; DeleteRecords has the same low watermark.
    """
    topic = _filled(bench)
    asked = [{"name": topic.name, "partitions": [{"partition_index": 0, "offset": 2}]}]
    body = bench.ask("DeleteRecords", at=topic.leader, topics=asked, timeout_ms=5000)
    return {"low watermark": body.topics[0].partitions[0].low_watermark, **_found(list_offset(bench, topic, -2))}


@chapter.check("LIST-OFFSETS-024", "KIP-107", uses={**USES, "DeleteRecords": -1})
def delete_to_the_end(bench: Bench) -> Any:
    """DeleteRecords takes -1 as the end, and refuses an offset above it.

    Delete the records before offset 99 of a log with three, then before -1.
    The first has OFFSET_OUT_OF_RANGE, the second moves the start to 3.
    """
    topic, found = _filled(bench), []
    for offset in (99, -1):
        asked = [{"name": topic.name, "partitions": [{"partition_index": 0, "offset": offset}]}]
        part = bench.ask("DeleteRecords", at=topic.leader, topics=asked, timeout_ms=5000).topics[0].partitions[0]
        found.append([error_name(part.error_code), part.low_watermark])
    return {"found": found}


def _epoch(bench: Bench, topic: Topic, leader_epoch: int, current: int = -1) -> dict[str, Any]:
    part = {"partition": 0, "leader_epoch": leader_epoch, "current_leader_epoch": current}
    topics = [{"topic": topic.name, "partitions": [part]}]
    body = bench.ask("OffsetForLeaderEpoch", at=topic.leader, replica_id=-1, topics=topics)
    found = body.topics[0].partitions[0]
    return {"error": error_name(found.error_code), "epoch": found.leader_epoch, "end": found.end_offset}


EPOCHS = {**USES, "OffsetForLeaderEpoch": 2}


@chapter.check("EPOCH-001", "KIP-101, KIP-320", uses=EPOCHS)
def current_epoch(bench: Bench) -> Any:
    """The current epoch ends at the end of the log.

    Produce three records, and ask for the end of epoch 0.
    It is 3.
    """
    return _epoch(bench, _filled(bench), 0)


@chapter.check("EPOCH-002", "KIP-320", uses=EPOCHS)
def future_epoch(bench: Bench) -> Any:
    """An epoch that has not begun has no end.

    Ask for the end of epoch 7.
    Epoch and end are -1.
    """
    return _epoch(bench, _filled(bench), 7)


@chapter.check("EPOCH-003", "KIP-320", uses=EPOCHS)
def unknown_current_epoch(bench: Bench) -> Any:
    """A client that knows a later leader epoch than the broker gets UNKNOWN_LEADER_EPOCH.

    Ask for the end of epoch 0 with the current leader epoch 5.
    The error is UNKNOWN_LEADER_EPOCH.
    """
    return _epoch(bench, _filled(bench), 0, current=5)


def _working(version: int) -> Observe:
    def observe(bench: Bench) -> Any:
        part = list_offset(bench, _filled(bench), -1, version=version)
        values = {"error": error_name(part.error_code), "offset": part.offset, "timestamp": part.timestamp}
        return {**values, "old style offsets": list(part.old_style_offsets), "leader epoch": part.leader_epoch}

    return observe


for _version in api_versions("ListOffsets"):
    chapter.add(
        BrokerCheck(
            id=f"LIST-OFFSETS-V{_version:02}",
            chapter=chapter.name,
            title=f"ListOffsets {_version} of the end of a log",
            source="ListOffsetsResponse",
            steps=("Produce three records.", f"Send ListOffsets {_version} with the timestamp -1."),
            observe=_working(_version),
            uses={**USES, "ListOffsets": _version},
            **released("ListOffsets", _version),
        )
    )

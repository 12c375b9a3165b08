"""A partition whose records are in the script: what kwire's log would not store, such as old formats and gaps.

It responds to Fetch, ListOffsets and OffsetForLeaderEpoch in place of the broker. Batches are bytes with their offsets.
"""

from __future__ import annotations

import asyncio
import itertools
from typing import TYPE_CHECKING, Any

from kwire import records
from kwire.conformance.broker.requests import response
from kwire.protocol.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kwire.conformance.client.exchange import Exchange
    from kwire.conformance.client.script import Script
    from kwire.messages.base import Message

__all__ = ["ScriptedLog"]

LATEST = -1
HEAD_BYTES = 12  # offset and length, in every magic
MAX_IDLE_S = 0.1
"""How long a Fetch at the end waits at most; records do not arrive meanwhile."""


class ScriptedLog:
    """Partition 0 of a topic. batches: in order of offsets. start, end: the log's offsets; end is by default that after
    the last batch. aborted: (producer id, first offset, offset of the marker). epoch_ends: leader epoch -> end offset.
    """

    def __init__(
        self,
        *batches: bytes,
        start: int = 0,
        end: int | None = None,
        aborted: tuple[tuple[int, int, int], ...] = (),
    ) -> None:
        self.batches = [(_last_offset(entry), entry) for data in batches for entry in entries(data)]
        self.start = start
        self.end = (self.batches[-1][0] + 1 if batches else start) if end is None else end
        self.aborted = aborted
        self.epoch_ends: dict[int, int] = {}

    def play(self, script: Script) -> None:
        """Respond from now on."""
        script.add("Fetch", reply=self._fetch)
        script.add("ListOffsets", reply=self._list_offsets, optional=True)
        script.add("OffsetForLeaderEpoch", reply=self._epoch_end, optional=True)

    async def _fetch(self, exchange: Exchange) -> Message:
        body = exchange.body
        topics = [
            {
                "topic": topic.topic,
                "topic_id": topic.topic_id,
                "partitions": [self._part(each, body.isolation_level) for each in topic.partitions],
            }
            for topic in body.topics
        ]
        if not any(part["records"] or part["error_code"] for topic in topics for part in topic["partitions"]):
            await asyncio.sleep(min(max(body.max_wait_ms, 0) / 1000, MAX_IDLE_S))
        return response("Fetch", exchange.version, responses=topics)

    def _part(self, asked: Any, isolation: int) -> dict[str, Any]:
        offset, ends = asked.fetch_offset, {"high_watermark": self.end, "last_stable_offset": self.end}
        part = {"partition_index": asked.partition, "error_code": 0, "log_start_offset": self.start, "records": b""}
        if not self.start <= offset <= self.end:
            return {**part, "error_code": int(ErrorCode.OFFSET_OUT_OF_RANGE), "high_watermark": -1}
        left = [(last, data) for last, data in self.batches if last >= offset]
        sizes = itertools.accumulate(len(data) for _, data in left)
        kept = [each for each, size in zip(left, sizes, strict=True) if size <= asked.partition_max_bytes] or left[:1]
        if isolation:
            part["aborted_transactions"] = [
                {"producer_id": producer, "first_offset": first}
                for producer, first, marker in self.aborted
                if kept and first <= kept[-1][0] and marker >= offset
            ]
        return {**part, **ends, "records": b"".join(data for _, data in kept)}

    def _list_offsets(self, exchange: Exchange) -> Message:
        def part(asked: Any) -> dict[str, Any]:
            offset = self.end if asked.timestamp == LATEST else self.start
            return {"partition_index": asked.partition_index, "offset": offset, "old_style_offsets": [offset]}

        topics = [{"name": each.name, "partitions": list(map(part, each.partitions))} for each in exchange.body.topics]
        return response("ListOffsets", exchange.version, topics=topics)

    def _epoch_end(self, exchange: Exchange) -> Message:
        def part(asked: Any) -> dict[str, Any]:
            epoch = asked.leader_epoch
            end = self.epoch_ends.get(epoch, self.end)
            return {"partition": asked.partition, "leader_epoch": epoch, "end_offset": end}

        topics = [
            {"topic": each.topic, "partitions": list(map(part, each.partitions))} for each in exchange.body.topics
        ]
        return response("OffsetForLeaderEpoch", exchange.version, topics=topics)


def entries(data: bytes) -> Iterator[bytes]:
    """Yield each batch, or message of magic 0 and 1, of some records: a Fetch begins at any of them."""
    while data:
        size = HEAD_BYTES + int.from_bytes(data[8:HEAD_BYTES], "big")
        yield data[:size]
        data = data[size:]


def _last_offset(data: bytes) -> int:
    return max(each.last_offset for each in records.read_batches(data))

"""What the fetches of a recording found, by partition: clients may ask for it in other requests than those recorded.

Sessions are not replayed: every response is one without a session, so each request names all its partitions. Records
are returned once as many Produce requests have been replayed as had their response before them in the recording.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any
from uuid import UUID

from kwire.errors import KwireError
from kwire.messages import FetchRequest, FetchResponse
from kwire.messages.fetch_response import PartitionData
from kwire.records import read_batches

__all__ = ["Fetches"]

Key = tuple[str | UUID, int]


class Found:
    """Records that a fetch found, or an error. writes: how many Produce requests were before. offsets: half open."""

    __slots__ = ("data", "end", "start", "writes")

    def __init__(self, data: PartitionData, start: int, end: int, writes: int) -> None:
        self.data, self.start, self.end, self.writes = data, start, end, writes


class Fetches:
    """The partitions of all Fetch responses of a recording. writes: how many Produce requests have been replayed."""

    def __init__(self) -> None:
        self._records: dict[Key, list[Found]] = defaultdict(list)
        self._errors: dict[Key, list[Found]] = defaultdict(list)
        self._asked: set[Key] = set()
        self.writes = 0

    def add(self, request: FetchRequest, response: FetchResponse | None, writes: int) -> None:
        """Add an exchange of the recording. response: None if it was not recorded."""
        for asked in request.topics:
            self._asked |= {(asked.topic or asked.topic_id, each.partition) for each in asked.partitions}
        for topic in () if response is None else response.responses:
            for data in topic.partitions:
                key = topic.topic or topic.topic_id, data.partition_index
                if data.error_code:
                    place = len(self._records[key])  # after so many results with records
                    self._errors[key].append(Found(data, place, place, writes))
                    continue
                offsets = offsets_of(data)
                if offsets is not None:
                    self._records[key].append(Found(data, *offsets, writes))

    def unknown(self, request: FetchRequest) -> list[str]:
        """Return what is asked for and was never fetched in the recording."""
        return [
            f"partition {each.partition} of {topic.topic or topic.topic_id} is not fetched in the recording"
            for topic in request.topics
            for each in topic.partitions
            if (topic.topic or topic.topic_id, each.partition) not in self._asked
        ]

    def respond(self, request: FetchRequest) -> tuple[FetchResponse, bool]:
        """Return a response, and whether it has records or errors."""
        response, has_news = FetchResponse(), False
        for topic in request.topics:
            made = FetchResponse.FetchableTopicResponse(topic=topic.topic, topic_id=topic.topic_id)
            for each in topic.partitions:
                found = self._find((topic.topic or topic.topic_id, each.partition), each.fetch_offset)
                has_news = has_news or found is not None
                made.partitions.append(found or nothing_new(each.partition, each.fetch_offset))
            response.responses.append(made)
        return response, has_news

    def _find(self, key: Key, offset: int) -> PartitionData | None:
        ready = [each for each in self._records.get(key, ()) if each.writes <= self.writes]
        errors = self._errors.get(key)
        place = sum(each.end <= offset for each in ready)
        if errors and errors[0].start <= place and errors[0].writes <= self.writes:
            return errors.pop(0).data
        return next((each.data for each in ready if each.start <= offset < each.end), None)


def offsets_of(data: PartitionData) -> tuple[int, int] | None:
    """Return the offsets of the records of a partition, half open; None without records that can be read."""
    try:
        batches = [(batch.base_offset, batch.last_offset) for batch in read_batches(bytes(data.records or b""))]
    except KwireError:
        return None
    return (batches[0][0], batches[-1][1] + 1) if batches else None


def nothing_new(index: int, offset: int) -> Any:
    """Return a partition whose end is at an offset."""
    return FetchResponse.PartitionData(
        partition_index=index, high_watermark=offset, last_stable_offset=offset, log_start_offset=0, records=b""
    )

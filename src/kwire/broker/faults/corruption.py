"""Records with a wrong checksum."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from kwire.broker.responses import RECORDS_ELSEWHERE, Response, SplicedResponse
from kwire.messages import FetchResponse, ShareFetchResponse
from kwire.messages.fetch_response import FetchableTopicResponse

if TYPE_CHECKING:
    from uuid import UUID

    from kwire.broker.responses import Piece
    from kwire.messages.base import Message
    from kwire.messages.fetch_response import PartitionData
    from kwire.messages.share_fetch_response import PartitionData as SharePartitionData

__all__ = ["corrupt_records", "with_records"]


def with_records(response: Response) -> Message:
    """Return a response with the records in it that are sent from elsewhere."""
    if not isinstance(response, SplicedResponse):
        return response
    payloads = iter(response.payloads)
    for _, partition in partitions(response.body):
        if partition.records is RECORDS_ELSEWHERE:
            partition.records = b"".join(map(read, next(payloads)))
    return response.body


def corrupt_records(response: Message, is_selected: Callable[[str | UUID, int], bool]) -> None:
    """Corrupt the records of selected partitions in a Fetch or ShareFetch response. Other responses are unchanged."""
    if isinstance(response, FetchResponse | ShareFetchResponse):
        for topic, partition in partitions(response):
            if partition.records and is_selected(topic, partition.partition_index):
                partition.records = flip_last_byte(bytes(partition.records))


def flip_last_byte(records: bytes) -> bytes:
    """Invert the last byte of records."""
    return records[:-1] + bytes([records[-1] ^ 0xFF])


def partitions(
    response: FetchResponse | ShareFetchResponse,
) -> Iterator[tuple[str | UUID, PartitionData | SharePartitionData]]:
    """Yield the partitions of a response, with their topics."""
    for topic in response.responses:
        name = topic.topic if isinstance(topic, FetchableTopicResponse) else ""
        for partition in topic.partitions:
            yield name or topic.topic_id, partition


def read(piece: Piece) -> bytes:
    """Return the bytes of a piece of a response."""
    return bytes(piece if isinstance(piece, bytes | bytearray | memoryview) else piece.read())

"""Fetch responses in pieces: what is sent decodes to the same response without the addresses of nodes."""

from __future__ import annotations

import random
from uuid import UUID

import pytest

from kwire.errors import Malformed
from kwire.messages import FetchResponse
from kwire.protocol.requests import response_codec, write_response
from kwire.tap.addresses import carries_addresses
from kwire.tap.fetch_stream import FIRST_WITH_ADDRESSES, FetchStream

FETCH = 1
VERSIONS = range(FIRST_WITH_ADDRESSES, FetchResponse.VALID_VERSIONS.highest + 1)


def response(*, moved: bool) -> FetchResponse:
    cls = FetchResponse
    topics = []
    for topic in range(3):
        partitions = []
        for index in range(4):
            part = cls.PartitionData(
                partition_index=index,
                high_watermark=5,
                records=None if index == 3 else bytes(range(256)) * index,
                aborted_transactions=[
                    cls.AbortedTransaction(producer_id=7, first_offset=each) for each in range(index)
                ],
            )
            if moved and index == 1:
                part.error_code = 6
                part.current_leader = cls.LeaderIdAndEpoch(leader_id=2, leader_epoch=9)
            partitions.append(part)
        topics.append(cls.FetchableTopicResponse(topic_id=UUID(int=topic + 1), partitions=partitions))
    endpoints = [cls.NodeEndpoint(node_id=2, host="elsewhere", port=9092)] if moved else []
    return cls(throttle_time_ms=1, session_id=77, responses=topics, node_endpoints=endpoints)


def streamed(frame: bytes, sizes: random.Random | None) -> bytes:
    stream, out, at = FetchStream(len(frame)), b"", 0
    while at < len(frame):
        size = 1 if sizes is None else sizes.randrange(1, 400)
        out += bytes(stream.feed(memoryview(frame)[at : at + size]))
        at += size
    assert stream.is_complete
    return out


def test_the_versions_with_addresses_are_those_from_16_on() -> None:
    assert [carries_addresses(FETCH, each) for each in (*range(16), *VERSIONS)] == [False] * 16 + [True] * len(VERSIONS)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("moved", [False, True])
def test_any_pieces_of_a_response_lead_nowhere_else(version: int, moved: bool) -> None:
    frame = write_response(response(moved=moved), api_key=FETCH, version=version, correlation_id=5)
    for sizes in (None, random.Random(1), random.Random(2)):
        sent = streamed(frame, sizes)
        assert len(sent) == len(frame)
        assert (sent == frame) is not moved
        _, body = response_codec(FETCH, version).decode(sent, False, True, False)
        assert body.node_endpoints == []
        body.unknown_tagged_fields = []
        assert body.responses == response(moved=moved).responses
        assert (body.session_id, body.throttle_time_ms) == (77, 1)


def test_a_response_that_is_too_long_or_has_an_endless_number_is_malformed() -> None:
    frame = write_response(response(moved=True), api_key=FETCH, version=17, correlation_id=5)
    with pytest.raises(Malformed, match="longer than its content"):
        FetchStream(len(frame) + 3).feed(frame + b"abc")
    for size in (len(frame) - 3, len(frame) + 3):
        with pytest.raises(Malformed, match="ends before its content, or after it"):
            FetchStream(size).feed(frame[:size])
    with pytest.raises(Malformed, match="varint above 32 bits"):
        FetchStream(1000).feed(frame[:8] + b"\xff" * 20)

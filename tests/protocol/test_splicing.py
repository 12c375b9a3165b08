"""Frames in pieces are equal to frames in one piece."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from kwire.messages import registry
from kwire.protocol import request_codec
from kwire.protocol.splicing import RECORDS_ELSEWHERE, cut_frame

PRODUCE: Any = registry.get("ProduceRequest")
HEADER: Any = registry.get("RequestHeader")


def frame(version: int, records: list[bytes]) -> bytes:
    data = [PRODUCE.PartitionProduceData(index=i, records=each) for i, each in enumerate(records)]
    body = PRODUCE(acks=-1, timeout_ms=1, topic_data=[PRODUCE.TopicProduceData(name="t", partition_data=data)])
    header = HEADER(request_api_key=0, request_api_version=version, correlation_id=1, client_id="c")
    return request_codec(0, version).encode((header, body))


@pytest.mark.parametrize("sizes", [(1,), (126, 127, 128), (16382, 16383, 16384, 70_000)])  # borders of varints
@pytest.mark.parametrize("version", [3, 8, 9])
def test_a_frame_cut_at_its_records_joins_to_the_frame_with_them(version: int, sizes: tuple[int, ...]) -> None:
    records = [bytes([n]) * size for n, size in enumerate(sizes)]
    around = cut_frame(frame(version, [RECORDS_ELSEWHERE] * len(sizes)), sizes, is_flexible=version >= 9)
    joined = b"".join(itertools.chain(*itertools.zip_longest(around, records, fillvalue=b"")))
    assert joined == frame(version, records)

"""How much CPU time does the broker's thread need for a Produce or Fetch request, without network I/O?

CPU time to decode the request, handle it, including the write to the page cache, and encode the response; fetched
records are not sent. Records of 100 bytes, one uncompressed batch per request.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from benchmarks.messages.timing import cpu_us, line
from kwire.broker import Broker
from kwire.broker.apis import SERVED
from kwire.broker.context import Peer
from kwire.broker.dispatch import call_handler, make_call
from kwire.broker.node import Node
from kwire.broker.responses import SplicedResponse
from kwire.messages import FetchRequest, MetadataRequest, ProduceRequest, RequestHeader
from kwire.messages.base import Message
from kwire.protocol import read_request, request_codec, write_response
from kwire.records import Record, TimestampType, write_batch

TOPIC = "bench"
PRODUCE, FETCH, METADATA = (0, 9), (1, 11), (3, 9)
BATCHES = {"1_record": 1, "64_KB": 590, "1_MB": 9000}
FILL = 200  # batches of 64 KB to be fetched


def frame(api: tuple[int, int], request: Message) -> bytes:
    """Encode a request as a frame."""
    header = RequestHeader(request_api_key=api[0], request_api_version=api[1], correlation_id=1, client_id="bench")
    return request_codec(*api).encode((header, request))


def batch(count: int) -> bytes:
    """Encode a batch of count records."""
    now_ms = int(time.time() * 1000)
    return write_batch(
        [
            Record(
                offset=0,
                timestamp=now_ms,
                timestamp_type=TimestampType.CREATE_TIME,
                key=None,
                value=b"v" * 100,
                headers=[],
            )
            for _ in range(count)
        ]
    )


def produce(records: bytes) -> bytes:
    """Encode a Produce request."""
    partition = ProduceRequest.PartitionProduceData(index=0, records=records)
    topic = ProduceRequest.TopicProduceData(name=TOPIC, partition_data=[partition])
    return frame(PRODUCE, ProduceRequest(acks=1, timeout_ms=1000, topic_data=[topic]))


def fetch(offset: int, max_bytes: int) -> bytes:
    """Encode a Fetch request."""
    partition = FetchRequest.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=max_bytes)
    topic = FetchRequest.FetchTopic(topic=TOPIC, partitions=[partition])
    return frame(FETCH, FetchRequest(max_wait_ms=500, min_bytes=1, max_bytes=50 << 20, topics=[topic]))


def served(node: Node, data: bytes | memoryview, api: tuple[int, int]) -> Callable[[], Any]:
    """Decode and handle a request, and encode its response."""
    peer = Peer(connection_id="bench", host="bench", port=1, listener="PLAINTEXT", security_protocol="PLAINTEXT")

    def once() -> None:
        request = read_request(data, SERVED, views=api == PRODUCE, lenient=True, allow_trailing=True)
        response = call_handler(node, make_call(request, peer))
        if isinstance(response, SplicedResponse):
            response.encode(api[1], 1)
        else:
            write_response(response, api_key=api[0], version=api[1], correlation_id=1)

    return once


def main() -> None:
    """Print the figures."""
    with Broker() as broker:

        def measure(node: Node) -> dict[str, float]:
            new = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=TOPIC)])
            served(node, frame(METADATA, new), METADATA)()  # makes it
            log = node.topics.get(TOPIC).partitions[0].opened
            for _ in range(FILL):
                served(node, produce(batch(BATCHES["64_KB"])), PRODUCE)()
            middle = log.log_end_offset // 2
            jobs = {f"produce_{name}": served(node, produce(batch(n)), PRODUCE) for name, n in BATCHES.items()}
            jobs["fetch_64_KB"] = served(node, fetch(middle, 1 << 16), FETCH)
            jobs["fetch_1_MB"] = served(node, fetch(middle, 1 << 20), FETCH)
            return cpu_us(jobs)

        for name, value in broker.call(measure).items():
            print(line(f"broker.requests.{name}", value, "us"))


if __name__ == "__main__":
    main()

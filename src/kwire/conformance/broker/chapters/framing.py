"""Frames: lengths, sizes, bytes split and joined, requests that cannot be read."""

from __future__ import annotations

import struct
import time
from typing import Any

from kwire.conformance.broker.bench import Bench
from kwire.conformance.broker.checks import Chapter
from kwire.conformance.broker.requests import error_name, request

__all__ = ["chapter"]

chapter = Chapter("Framing and sizes")
SOURCE = "Kafka protocol guide; NetworkReceive"
PLAIN = ("plain connection",)


def _closes(bench: Bench, data: bytes) -> dict[str, Any]:
    """Send bytes on a new connection; observe whether it is closed, and whether the broker still serves others."""
    connection = bench.connect()
    connection.send_bytes(data)
    closed = connection.is_closed()
    return {"closed": closed, "others": error_name(bench.connect().ask(request("ApiVersions", 0), 0).error_code)}


@chapter.check("FRAME-001", SOURCE, needs=PLAIN)
def negative_length(bench: Bench) -> Any:
    """A frame with a negative length closes the connection.

    Send a length of -1.
    The broker closes the connection, and serves a new one.
    """
    return _closes(bench, b"\xff\xff\xff\xff")


@chapter.check("FRAME-002", SOURCE, needs=PLAIN)
def too_large(bench: Bench) -> Any:
    """A frame above socket.request.max.bytes closes the connection.

    Send a length of 2 GiB - 1, then a few bytes.
    The broker closes the connection before more arrives, and serves a new one.
    """
    return _closes(bench, b"\x7f\xff\xff\xff" + bytes(8))


@chapter.check("FRAME-003", SOURCE, needs=PLAIN)
def empty(bench: Bench) -> Any:
    """A frame without content closes the connection.

    Send a length of 0.
    The broker closes the connection, and serves a new one.
    """
    return _closes(bench, bytes(4))


@chapter.check("FRAME-004", SOURCE, needs=PLAIN)
def shorter_than_a_header(bench: Bench) -> Any:
    """A frame that ends inside the request header closes the connection.

    Send a frame with an API key, a version and half of a correlation id.
    The broker closes the connection, and serves a new one.
    """
    return _closes(bench, struct.pack(">ihhh", 6, 18, 0, 0))


@chapter.check("FRAME-005", SOURCE, needs=PLAIN)
def byte_by_byte(bench: Bench) -> Any:
    """A request that arrives byte by byte is served.

    Send an ApiVersions request one byte at a time.
    The response is that of a request in one piece.
    """
    connection = bench.connect()
    frame, _ = connection.encode(request("ApiVersions", 0), 0)
    for i in range(len(frame)):
        connection.send_bytes(frame[i : i + 1])
    return {"correlation id": connection.receive_frame()[4:8] == frame[8:12]}


@chapter.check("FRAME-006", SOURCE, needs=PLAIN)
def two_in_one(bench: Bench) -> Any:
    """Two requests in one packet have two responses.

    Send two ApiVersions requests in one piece.
    Both have a response, in their order.
    """
    connection = bench.connect()
    first, _ = connection.encode(request("ApiVersions", 0), 0)
    second, _ = connection.encode(request("ApiVersions", 0), 0)
    connection.send_bytes(first + second)
    return {"correlation ids": [connection.receive_frame()[4:8] == each[8:12] for each in (first, second)]}


@chapter.check("FRAME-007", SOURCE, needs=PLAIN)
def cut_and_left(bench: Bench) -> Any:
    """A client that leaves inside a frame harms no other.

    Send half of an ApiVersions request, and close the connection.
    A new connection is served.
    """
    connection = bench.connect()
    frame, _ = connection.encode(request("ApiVersions", 0), 0)
    connection.send_bytes(frame[: len(frame) // 2])
    connection.close()
    return {"others": error_name(bench.connect().ask(request("ApiVersions", 0), 0).error_code)}


@chapter.check("FRAME-008", SOURCE, needs=PLAIN)
def waits_for_the_rest(bench: Bench) -> Any:
    """An incomplete frame has no response until the rest arrives.

    Send an ApiVersions request without its last byte, wait 100 ms, then send it.
    There is no response before it, and one after it.
    """
    connection = bench.connect()
    frame, _ = connection.encode(request("ApiVersions", 0), 0)
    connection.send_bytes(frame[:-1])
    silent = connection.is_silent(0.1)
    connection.send_bytes(frame[-1:])
    return {"silent before": silent, "response after": connection.receive_frame()[4:8] == frame[8:12]}


@chapter.check("FRAME-009", SOURCE, uses={"Metadata": 1}, needs=PLAIN)
def trailing_bytes(bench: Bench) -> Any:
    """Bytes after the body of a request are ignored.

    Send a Metadata request with three more bytes in its frame, as librdkafka does.
    The response is that of the request without them.
    """
    connection = bench.connect()
    frame, _ = connection.encode(request("Metadata", 1, topics=[]), 1)
    connection.send_bytes(struct.pack(">i", len(frame) - 4 + 3) + frame[4:] + b"\1\2\3")
    return {"correlation id": connection.receive_frame()[4:8] == frame[8:12]}


@chapter.check("FRAME-010", "RequestHeader", uses={"Metadata": 1})
def null_client_id(bench: Bench) -> Any:
    """A request without a client id is served.

    Send a Metadata request with a null client id, then one with an empty client id.
    Both have a response.
    """
    connection = bench.connect()
    counts = []
    for client_id in (None, ""):
        connection.send(request("Metadata", 1, topics=[]), 1, client_id=client_id)
        counts.append(len(connection.receive().brokers) > 0)
    return {"brokers": counts}


@chapter.check("FRAME-011", "RequestHeader", uses={"Metadata": 1})
def extreme_correlation_ids(bench: Bench) -> Any:
    """Every correlation id comes back, negative ones too.

    Send ApiVersions requests with the correlation ids 0, -1, the largest and the smallest int32.
    Each response has the correlation id of its request.
    """
    connection = bench.connect()
    returned = []
    for number in (0, -1, 2**31 - 1, -(2**31)):
        frame, _ = connection.encode(request("ApiVersions", 0), 0)
        connection.send_bytes(frame[:8] + struct.pack(">i", number) + frame[12:])
        returned.append(struct.unpack(">i", connection.receive_frame(at_least=4)[4:8])[0])
    return {"correlation ids": returned}


@chapter.check("FRAME-012", SOURCE, uses={"Metadata": 1})
def array_count_beyond_the_frame(bench: Bench) -> Any:
    """An array count above the bytes of the frame closes the connection.

    Send a Metadata request whose array of topics has a count of 2,147,483,647.
    The broker closes the connection, and serves a new one.
    """
    connection = bench.connect()
    frame, _ = connection.encode(request("Metadata", 1, topics=[]), 1)
    connection.send_bytes(frame[:-4] + b"\x7f\xff\xff\xff")
    return {"closed": connection.is_closed(), "others": bench.ask("ApiVersions", 0).error_code}


@chapter.check("FRAME-013", SOURCE, uses={"Metadata": 1})
def string_beyond_the_frame(bench: Bench) -> Any:
    """A string length above the bytes of the frame closes the connection.

    Send a Metadata request with one topic, whose name has a length of 32,767 and one byte.
    The broker closes the connection.
    """
    connection = bench.connect()
    frame, _ = connection.encode(request("Metadata", 1, topics=[{"name": "t"}]), 1)
    connection.send_bytes(frame[:-3] + b"\x7f\xfft")
    return {"closed": connection.is_closed()}


@chapter.check("FRAME-014", SOURCE, uses={"Metadata": 1})
def null_for_a_string(bench: Bench) -> Any:
    """A null string where none is allowed closes the connection.

    Send a Metadata request with one topic, whose name has a length of -1.
    The broker closes the connection.
    """
    connection = bench.connect()
    frame, _ = connection.encode(request("Metadata", 1, topics=[{"name": "t"}]), 1)
    connection.send_bytes(struct.pack(">i", len(frame) - 5) + frame[4:-3] + b"\xff\xff")
    return {"closed": connection.is_closed()}


@chapter.check("FRAME-015", "KIP-482", uses={"Metadata": 9})
def varint_too_long(bench: Bench) -> Any:
    """An unsigned varint of more than five bytes closes the connection.

    Send a Metadata request of version 9 whose count of topics is a varint of six bytes.
    The broker closes the connection.
    """
    connection = bench.connect()
    frame, _ = connection.encode(request("Metadata", 9, topics=[]), 9)
    body = frame[4:-5] + b"\xff\xff\xff\xff\xff\x01" + frame[-4:]
    connection.send_bytes(struct.pack(">i", len(body)) + body)
    return {"closed": connection.is_closed()}


@chapter.check("ORDER-001", "Kafka protocol guide, Network", uses={"Metadata": 1})
def pipelined(bench: Bench) -> Any:
    """Responses have the order of the requests.

    Send 50 requests in turns of ApiVersions and Metadata without waiting.
    The responses arrive in this order.
    """
    connection = bench.connect()
    for i in range(50):
        api, version = (("ApiVersions", 0), ("Metadata", 1))[i % 2]
        connection.send(request(api, version, topics=[]) if i % 2 else request(api, version), version)
    bodies = [type(connection.receive()).__name__ for _ in range(50)]
    return {"in order": bodies == ["ApiVersionsResponse", "MetadataResponse"] * 25}


@chapter.check("ORDER-002", "SocketServer", uses={"Fetch": -1, "ListOffsets": -1})
def slow_before_fast(bench: Bench) -> Any:
    """A request behind a waiting one has its response after it.

    Send a Fetch that waits up to 300 ms for records that never come, then ApiVersions, on one connection.
    The response to Fetch is first, and not before 200 ms.
    """
    topic = bench.topic()
    connection = bench.connect(topic.leader)
    version = bench.best("Fetch", 12)
    partition = {"partition": 0, "partition_max_bytes": 1 << 20}
    topics = [{"topic": topic.name, "partitions": [partition]}]
    began = time.monotonic()
    connection.send(request("Fetch", version, max_wait_ms=300, min_bytes=1, topics=topics), version)
    connection.send(request("ApiVersions", 0), 0)
    first = connection.receive()
    waited = time.monotonic() - began
    second = connection.receive()
    return {"order": [type(first).__name__, type(second).__name__], "waited": waited >= 0.2}


@chapter.check("ORDER-003", "Kafka protocol guide, Network", uses={"Metadata": 1})
def other_connections_go_on(bench: Bench) -> Any:
    """A connection whose client does not read holds up no other.

    Send 200 Metadata requests on one connection and read no response.
    A second connection is served meanwhile; then all 200 responses arrive.
    """
    connection = bench.connect()
    for _ in range(200):
        frame, _ = connection.encode(request("Metadata", 1, topics=[]), 1)
        connection.send_bytes(frame)
    other = error_name(bench.connect().ask(request("ApiVersions", 0), 0).error_code)
    return {"other": other, "responses": sum(len(connection.receive_frame()) > 8 for _ in range(200))}

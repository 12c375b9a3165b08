"""Captures written as pcapng: TCP connections that were not captured as packets, such as those of a proxy.

    section header        byte order, version 1.0, length unknown
    interface             raw IP (link type 101), timestamps in nanoseconds
    packet                IPv4 or IPv6 and TCP header, then at most SEGMENT_BYTES

Each connection begins with SYN, SYN-ACK and ACK, which tells readers the client, and ends with FIN. Checksums of TCP
are 0, as where a network card computes them.
Source: draft-ietf-opsawg-pcapng, RFC 791, 8200, 9293.
"""

from __future__ import annotations

import ipaddress
import struct
import time
from collections.abc import Callable
from typing import IO

from kwire.capture.packets import ACK, FIN, INTERFACE_DESCRIPTION, SECTION_HEADER, SYN, TCP

__all__ = ["CaptureWriter", "TcpRecord"]

ENHANCED = 6
RAW_IP = 101
NANOSECONDS = bytes([9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0])  # if_tsresol 10^-9, end of options
BYTE_ORDER, UNKNOWN_LENGTH = 0x1A2B3C4D, 0xFFFFFFFFFFFFFFFF
SEGMENT_BYTES = 32 * 1024
PUSH = 0x08
WINDOW = 0xFFFF
IPV4, IPV6, HOPS = 0x45, 0x60, 64
SEQUENCES = 1 << 32

Address = tuple[str, int]


class CaptureWriter:
    """Writes packets to a binary file. clock_ns: the time in nanoseconds since the epoch."""

    def __init__(self, file: IO[bytes], clock_ns: Callable[[], int] = time.time_ns) -> None:
        self._file, self._clock_ns = file, clock_ns
        self._block(SECTION_HEADER, struct.pack("<IHHQ", BYTE_ORDER, 1, 0, UNKNOWN_LENGTH))
        self._block(INTERFACE_DESCRIPTION, struct.pack("<HHI", RAW_IP, 0, 0) + NANOSECONDS)

    def _block(self, kind: int, body: bytes) -> None:
        size = len(body) + 12
        self._file.write(struct.pack("<II", kind, size) + body + struct.pack("<I", size))

    def packet(self, data: bytes) -> None:
        """Write an IP packet."""
        time_ns, size = self._clock_ns(), len(data)
        head = struct.pack("<IIIII", 0, time_ns >> 32, time_ns & 0xFFFFFFFF, size, size)
        self._block(ENHANCED, head + data + bytes(-size % 4))

    def connection(self, client: Address, server: Address) -> TcpRecord:
        """Begin a connection."""
        return TcpRecord(self, client, server)


class TcpRecord:
    """A connection in a capture."""

    def __init__(self, writer: CaptureWriter, client: Address, server: Address) -> None:
        self._writer = writer
        ends = [(ipaddress.ip_address(host.partition("%")[0]).packed, port) for host, port in (client, server)]
        self._ends = (ends[0], ends[1])
        self._next = [0, 0]  # sequence numbers of both ends
        self._segment(0, SYN)
        self._segment(1, SYN | ACK)
        self._segment(0, ACK)

    def sent(self, data: bytes | memoryview) -> None:
        """Write what the client sends."""
        self._stream(0, data)

    def received(self, data: bytes | memoryview) -> None:
        """Write what the server sends."""
        self._stream(1, data)

    def close(self) -> None:
        """Write the end of the connection."""
        self._segment(1, FIN | ACK)
        self._segment(0, FIN | ACK)

    def _stream(self, end: int, data: bytes | memoryview) -> None:
        view = memoryview(data)
        for start in range(0, len(view), SEGMENT_BYTES):
            self._segment(end, ACK | PUSH, view[start : start + SEGMENT_BYTES])

    def _segment(self, end: int, flags: int, data: bytes | memoryview = b"") -> None:
        (source, source_port), (target, target_port) = self._ends[end], self._ends[1 - end]
        acknowledged = self._next[1 - end] if flags & ACK else 0
        tcp = struct.pack(
            ">HHIIBBHHH", source_port, target_port, self._next[end], acknowledged, 5 << 4, flags, WINDOW, 0, 0
        )
        size = len(tcp) + len(data)
        if len(source) == 4:
            ip = struct.pack(">BBHHHBBH", IPV4, 0, 20 + size, 0, 0, HOPS, TCP, 0) + source + target
            ip = ip[:10] + checksum(ip).to_bytes(2, "big") + ip[12:]
        else:
            ip = struct.pack(">IHBB", IPV6 << 24, size, TCP, HOPS) + source + target
        self._writer.packet(b"".join((ip, tcp, data)))
        self._next[end] = (self._next[end] + len(data) + bool(flags & (SYN | FIN))) % SEQUENCES


def checksum(header: bytes) -> int:
    """Return the checksum of an IPv4 header whose checksum field is 0."""
    total = sum(int.from_bytes(header[at : at + 2], "big") for at in range(0, len(header), 2))
    total = (total & 0xFFFF) + (total >> 16)
    return ~(total + (total >> 16)) & 0xFFFF

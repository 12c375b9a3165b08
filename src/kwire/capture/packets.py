"""TCP segments of a capture file: pcap and pcapng, with any link type that carries IP.

    pcap      24 bytes: magic (a1b2c3d4 microseconds, a1b23c4d nanoseconds, either byte order), version, time zone,
              accuracy, snap length, link type. A packet: seconds, fraction, captured bytes, original bytes, data.
    pcapng    blocks: type, length, body, length again. A section header gives the byte order, an interface
              description a link type and the unit of its timestamps. Packets refer to an interface.

A segment has `missing_bytes` after its data if its packet was truncated to the snap length, or is shorter than its IP
header says. A file that ends inside a packet is an interrupted capture and not an error. Everything else that is not a
packet raises Malformed, after the packets before it.
Source: draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng, tcpdump.org/linktypes.html, RFC 791, 8200, 9293.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from kwire.errors import Malformed
from kwire.storage.store import StoredFile

__all__ = ["FIN", "RST", "SYN", "PacketCounts", "Segment", "read_segments"]

FIN, SYN, RST, ACK = 0x01, 0x02, 0x04, 0x10

WINDOW_BYTES = 1 << 20
MAX_PACKET_BYTES = 1 << 24  # far above any snap length; keeps a damaged length from reading the whole file

PCAP_MAGICS = {  # first four bytes -> (byte order, nanoseconds per unit of the fraction)
    b"\xa1\xb2\xc3\xd4": (">", 1000),
    b"\xd4\xc3\xb2\xa1": ("<", 1000),
    b"\xa1\xb2\x3c\x4d": (">", 1),
    b"\x4d\x3c\xb2\xa1": ("<", 1),
}
SECTION_HEADER = 0x0A0D0D0A  # the same in both byte orders
INTERFACE_DESCRIPTION, OBSOLETE_PACKET, SIMPLE_PACKET, ENHANCED_PACKET = 1, 2, 3, 6
OPTION_END, OPTION_TIME_RESOLUTION, OPTION_TIME_OFFSET = 0, 9, 14

ETHERNET_IPV4, ETHERNET_IPV6 = 0x0800, 0x86DD
VLAN_TAGS = (0x8100, 0x88A8, 0x9100)
TCP = 6
IPV6_EXTENSIONS = (0, 43, 60, 135)  # hop by hop, routing, destination, mobility: next header, length in 8 bytes
IPV6_FRAGMENT = 44


class Segment(NamedTuple):
    """A TCP segment.

    time_ns: since the epoch. source, target: (address bytes, port). sequence, acknowledged: as on the wire, uint32;
    acknowledged is -1 without an ACK. flags: FIN, SYN, RST. missing_bytes: payload after data that was not captured.
    """

    time_ns: int
    source: tuple[bytes, int]
    target: tuple[bytes, int]
    sequence: int
    acknowledged: int
    flags: int
    data: bytes
    missing_bytes: int


@dataclass(slots=True)
class PacketCounts:
    """Counts of a file: packets; those without TCP over IP; IP fragments, which are not reassembled."""

    packets: int = 0
    not_tcp: int = 0
    fragments: int = 0


class FileWindow:
    """A file read sequentially in large pieces."""

    def __init__(self, file: StoredFile) -> None:
        self._file, self._window, self._start = file, b"", 0
        self.position = 0

    def take(self, n: int) -> bytes:
        """Return the next n bytes, fewer at the end of the file."""
        at = self.position - self._start
        if at + n > len(self._window):
            self._window = self._file.pread(self.position, max(n, WINDOW_BYTES))
            self._start, at = self.position, 0
        data = self._window[at : at + n]
        self.position += len(data)
        return data


def read_segments(file: StoredFile, counts: PacketCounts | None = None) -> Iterator[Segment]:
    """Yield the TCP segments of a pcap or pcapng file, in its order. counts: updated while reading.

    Raises Malformed (position: in the file) for a file that is not a capture or is damaged, LogError if it cannot be
    read.
    """
    counts = PacketCounts() if counts is None else counts
    window = FileWindow(file)
    head = window.take(4)
    if head in PCAP_MAGICS:
        packets = pcap_packets(window, *PCAP_MAGICS[head])
    elif head == SECTION_HEADER.to_bytes(4, "big"):
        packets = pcapng_packets(window)
    else:
        problem = f"starts with {head.hex(' ')}" if head else "is empty"
        raise Malformed(f"not a pcap or pcapng file: {problem}", 0)
    for time_ns, link_type, data in packets:
        counts.packets += 1
        packet = LINK_TYPES[link_type](data)
        segment = None if packet is None else tcp_segment(time_ns, packet, counts)
        if segment is None:
            counts.not_tcp += 1
        else:
            yield segment


Packet = tuple[int, int, bytes]  # time in ns, link type, captured bytes


def pcap_packets(window: FileWindow, order: str, unit_ns: int) -> Iterator[Packet]:
    """Yield the packets of a classic pcap file, which window has read up to the end of the magic."""
    head = window.take(20)
    if len(head) < 20:
        raise Malformed("file ends inside its header", 4)
    link_type = check_link_type(struct.unpack(order + "I", head[16:])[0] & 0xFFFF, 20)
    record = struct.Struct(order + "IIII")
    while True:
        position = window.position
        header = window.take(16)
        if len(header) < 16:
            return
        seconds, fraction, captured, original = record.unpack(header)
        if captured > MAX_PACKET_BYTES or captured > original + 4:  # some writers count a frame check sequence
            raise Malformed(f"packet of {captured} captured and {original} original bytes", position)
        data = window.take(captured)
        if len(data) < captured:
            return
        yield seconds * 1_000_000_000 + fraction * unit_ns, link_type, data


def check_link_type(number: int, position: int) -> int:
    """Return number. Raises Malformed for a link type that is not supported."""
    if number not in LINK_TYPES:
        supported = ", ".join(map(str, sorted(LINK_TYPES)))
        raise Malformed(f"link type {number} is not supported; supported link types: {supported}", position)
    return number


@dataclass(frozen=True, slots=True)
class Interface:
    """An interface of a pcapng section."""

    link_type: int
    units_per_second: int
    offset_s: int

    def time_ns(self, high: int, low: int) -> int:
        """Convert the two halves of a packet's timestamp to nanoseconds since the epoch."""
        return self.offset_s * 1_000_000_000 + ((high << 32) | low) * 1_000_000_000 // self.units_per_second


def pcapng_packets(window: FileWindow) -> Iterator[Packet]:
    """Yield the packets of a pcapng file, which window has read up to the end of the first block type."""
    order, interfaces, kind, position = "<", list[Interface](), SECTION_HEADER, 0
    while True:
        lengths = window.take(8 if kind == SECTION_HEADER else 4)
        if kind == SECTION_HEADER and len(lengths) == 8:
            order = byte_order(lengths[4:], position)
            interfaces = []
        if len(lengths) < 4:
            return
        (length,) = struct.unpack(order + "I", lengths[:4])
        if length % 4 or not len(lengths) + 8 <= length <= MAX_PACKET_BYTES:
            raise Malformed(f"block of {length} bytes", position)
        body = lengths[4:] + window.take(length - 4 - len(lengths))
        if len(body) < length - 8:
            return
        if body[-4:] != lengths[:4]:
            raise Malformed("lengths before and after a block differ", position)
        yield from block_packets(kind, body[:-4], order, interfaces, position)
        position = window.position
        head = window.take(4)
        if len(head) < 4:
            return
        (kind,) = struct.unpack(order + "I", head)


def byte_order(magic: bytes, position: int) -> str:
    """Return `>` or `<` for a section header's byte-order magic. Raises Malformed."""
    for order in "<>":
        if struct.unpack(order + "I", magic)[0] == 0x1A2B3C4D:
            return order
    raise Malformed(f"section header with unknown byte-order magic {magic.hex(' ')}", position)


def block_packets(kind: int, body: bytes, order: str, interfaces: list[Interface], position: int) -> Iterator[Packet]:
    """Yield the packet of a block, if it has one; add an interface description to interfaces."""
    if kind == INTERFACE_DESCRIPTION:
        interfaces.append(parse_interface(body, order, position))
    elif kind in (ENHANCED_PACKET, OBSOLETE_PACKET):
        if len(body) < 20:
            raise Malformed("packet block is too short for its header", position)
        number, high, low, captured, _ = struct.unpack_from(order + "IIIII", body)
        if kind == OBSOLETE_PACKET:
            number = struct.unpack_from(order + "H", body)[0]
        interface = interface_of(interfaces, number, position)
        if captured > len(body) - 20:
            raise Malformed(f"packet of {captured} bytes in a block with {len(body) - 20} bytes", position)
        yield interface.time_ns(high, low), interface.link_type, body[20 : 20 + captured]
    elif kind == SIMPLE_PACKET and len(body) >= 4:
        (original,) = struct.unpack_from(order + "I", body)
        yield 0, interface_of(interfaces, 0, position).link_type, body[4 : 4 + original]  # without a timestamp


def interface_of(interfaces: list[Interface], number: int, position: int) -> Interface:
    """Return the interface of a packet. Raises Malformed if it has no description."""
    if number >= len(interfaces):
        raise Malformed(f"packet of interface {number}, but only {len(interfaces)} interfaces are described", position)
    return interfaces[number]


def parse_interface(body: bytes, order: str, position: int) -> Interface:
    """Parse an interface description: link type, snap length, options. Raises Malformed."""
    if len(body) < 8:
        raise Malformed("interface description is too short for its header", position)
    link_type = check_link_type(struct.unpack_from(order + "H", body)[0], position)
    units, offset_s, at = 1_000_000, 0, 8
    while at + 4 <= len(body):
        code, length = struct.unpack_from(order + "HH", body, at)
        value = body[at + 4 : at + 4 + length]
        if code == OPTION_TIME_RESOLUTION and length == 1:
            power = value[0] & 0x7F
            if power > 63:
                raise Malformed(f"time resolution {value.hex()} is out of range", position)
            units = (2 if value[0] & 0x80 else 10) ** power
        elif code == OPTION_TIME_OFFSET and length == 8 == len(value):
            (offset_s,) = struct.unpack(order + "q", value)
        elif code == OPTION_END:
            break
        at += 4 + (length + 3 & ~3)
    return Interface(link_type, units, offset_s)


# ---- link layers: each function returns the IP packet, or None


def ethernet(data: bytes) -> bytes | None:
    """Return the IP packet of an Ethernet frame."""
    return after_ether_type(data, 12)


def after_ether_type(data: bytes, at: int) -> bytes | None:
    """Return the IP packet after an EtherType at position `at`, or after VLAN tags."""
    while len(data) >= at + 2:
        kind = data[at] << 8 | data[at + 1]
        if kind in (ETHERNET_IPV4, ETHERNET_IPV6):
            return data[at + 2 :]
        if kind not in VLAN_TAGS:
            return None
        at += 4
    return None


def linux_cooked_2(data: bytes) -> bytes | None:
    """Return the IP packet of a Linux cooked capture, version 2."""
    if len(data) < 20 or data[0] << 8 | data[1] not in (ETHERNET_IPV4, ETHERNET_IPV6):
        return None
    return data[20:]


LINK_TYPES: dict[int, Callable[[bytes], bytes | None]] = {
    0: lambda data: data[4:],  # BSD loopback: address family, then IP of either version
    1: ethernet,
    12: lambda data: data,  # raw IP, which has several numbers
    14: lambda data: data,
    101: lambda data: data,
    108: lambda data: data[4:],
    113: lambda data: after_ether_type(data, 14),  # Linux cooked, what `tcpdump -i any` writes
    228: lambda data: data,
    229: lambda data: data,
    276: linux_cooked_2,
}


# ---- IP and TCP


def tcp_segment(time_ns: int, packet: bytes, counts: PacketCounts) -> Segment | None:
    """Parse the TCP segment of an IP packet; None without one, or if its header was not captured."""
    version = packet[0] >> 4 if packet else 0
    if version == 4 and len(packet) >= 20:
        at, total = (packet[0] & 15) * 4, packet[2] << 8 | packet[3]
        protocol, source, target = packet[9], packet[12:16], packet[16:20]
        if (packet[6] << 8 | packet[7]) & 0x3FFF:  # more fragments flag or fragment offset
            counts.fragments += 1
            return None
    elif version == 6 and len(packet) >= 40:
        total = (packet[4] << 8 | packet[5]) + 40 if packet[4:6] != b"\0\0" else 0
        protocol, source, target, at = packet[6], packet[8:24], packet[24:40], 40
        while protocol in IPV6_EXTENSIONS and len(packet) >= at + 2:
            protocol, at = packet[at], at + 8 + packet[at + 1] * 8
        if protocol == IPV6_FRAGMENT:
            counts.fragments += 1
            return None
    else:
        return None
    if protocol != TCP or at < 20 or len(packet) < at + 20:
        return None
    total = total or len(packet)  # 0 with segmentation offload
    source_port, target_port, sequence, acknowledged, offset, flags = struct.unpack_from(">HHIIBB", packet, at)
    start = at + (offset >> 4) * 4
    if start < at + 20 or start > total:
        return None
    data = packet[start:total]  # without the padding of a minimum-size Ethernet frame
    return Segment(
        time_ns,
        (source, source_port),
        (target, target_port),
        sequence,
        acknowledged if flags & ACK else -1,
        flags & (FIN | SYN | RST),
        data,
        max(0, total - max(start, len(packet))),
    )

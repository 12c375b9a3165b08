"""Packet captures as Kafka's requests and responses.

read_capture    yields an Exchange, a request with its response, from a pcap or pcapng file
"""

from kwire.capture.capture import CaptureCounts, read_capture
from kwire.capture.exchange import Exchange, render_address
from kwire.capture.frame_stream import Frame

__all__ = ["CaptureCounts", "Exchange", "Frame", "read_capture", "render_address"]

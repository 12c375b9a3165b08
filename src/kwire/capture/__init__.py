"""Packet captures as Kafka's requests and responses.

read_capture        a pcap or pcapng file -> Exchange, one a request with its response
"""

from kwire.capture.capture import CaptureCounts, read_capture
from kwire.capture.exchange import Exchange, render_address
from kwire.capture.frame_stream import Frame

__all__ = ["CaptureCounts", "Exchange", "Frame", "read_capture", "render_address"]

"""Kafka's protocol without sockets: frames, headers, correlation, versions, for brokers and clients.

Connection      one end of a connection: bytes in, requests or responses out, and back
FrameBuffer     a stream cut into frames
request_codec, response_codec       (header, body) of one api key and version
read_metadata_record, read_prefixed and their writers       messages in log records
hide_secrets    messages for people's eyes
"""

from kwire.protocol.connection import TRANSITIONS, Connection, Event, Request, Response, Role, State
from kwire.protocol.frames import (
    MAX_FRAME_BYTES,
    NEED_DATA,
    FrameBuffer,
    NeedData,
    request_codec,
    request_key,
    response_codec,
)
from kwire.protocol.record_values import read_metadata_record, read_prefixed, write_metadata_record, write_prefixed
from kwire.protocol.secrets import HIDDEN, has_secrets, hide_secrets, is_secret_config, is_secret_setting
from kwire.protocol.versions import describe, highest_common, offered, supported

__all__ = [
    "HIDDEN",
    "MAX_FRAME_BYTES",
    "NEED_DATA",
    "TRANSITIONS",
    "Connection",
    "Event",
    "FrameBuffer",
    "NeedData",
    "Request",
    "Response",
    "Role",
    "State",
    "describe",
    "has_secrets",
    "hide_secrets",
    "highest_common",
    "is_secret_config",
    "is_secret_setting",
    "offered",
    "read_metadata_record",
    "read_prefixed",
    "request_codec",
    "request_key",
    "response_codec",
    "supported",
    "write_metadata_record",
    "write_prefixed",
]

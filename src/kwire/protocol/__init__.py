"""Kafka's protocol without sockets: frames, headers, correlation, versions; for brokers and clients.

Connection      one end of a connection: bytes in, requests or responses out, and back
FrameBuffer     cuts a stream into frames
read_request, write_request, read_response, write_response  one request or response with its header and frame
read_metadata_record, read_prefixed and their writers       messages in the records of Kafka's internal topics
hide_secrets    a message without passwords, keys and tokens, for logs and reports
"""

from kwire.protocol.connection import TRANSITIONS, Connection, Event, Role, State
from kwire.protocol.frames import MAX_FRAME_BYTES, NEED_DATA, FrameBuffer, NeedData
from kwire.protocol.record_values import read_metadata_record, read_prefixed, write_metadata_record, write_prefixed
from kwire.protocol.requests import (
    Request,
    Response,
    read_request,
    read_response,
    request_codec,
    request_key,
    response_codec,
    write_request,
    write_response,
)
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
    "read_request",
    "read_response",
    "request_codec",
    "request_key",
    "response_codec",
    "supported",
    "write_metadata_record",
    "write_prefixed",
    "write_request",
    "write_response",
]

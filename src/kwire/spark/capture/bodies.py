"""Option `message` of kafka-capture: the requests or responses of one message as a column of structs.

The struct has the fields of all versions; fields that an exchange's version lacks are null. Secrets are hidden as in
the JSON form: messages that can contain secrets are decoded and encoded without them first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from kwire.errors import KwireError
from kwire.messages import registry
from kwire.plan.nested_columns import message_bounds
from kwire.plan.nested_versions import VersionsReader
from kwire.protocol.secrets import has_secrets

if TYPE_CHECKING:
    from kwire.capture import Exchange
    from kwire.messages.base import Message

__all__ = ["CaptureBodies"]

NO_VERSION = -1


class CaptureBodies:
    """Reads the bodies of one message. cls: the class of a request or response."""

    def __init__(self, cls: type[Message]) -> None:
        self._api_key = cls.API_KEY
        self._is_request = cls.SPEC.kind == "request"
        self._has_secrets = has_secrets(cls())
        header = registry.get("RequestHeader" if self._is_request else "ResponseHeader").SPEC
        self._reader = VersionsReader(cls.SPEC, header=None if self._has_secrets else header)

    def read(self, exchanges: Sequence[Exchange | None]) -> pa.StructArray:
        """Return a struct per exchange; null for other messages, and for bodies that cannot be decoded."""
        bodies = [self._body(exchange) for exchange in exchanges]
        data, bounds = message_bounds(pa.array([body for body, _ in bodies], pa.binary()))
        versions = np.array([version for _, version in bodies], np.int64)
        return self._reader.read_bounds(data, bounds, versions, permissive=True)

    def _body(self, exchange: Exchange | None) -> tuple[bytes | None, int]:
        """Return the bytes to decode and their version."""
        if exchange is None or exchange.api_key != self._api_key:
            return None, NO_VERSION
        frame = exchange.request if self._is_request else exchange.response
        version = exchange.api_version if self._is_request else exchange.response_version()
        if frame is None or version is None or not frame.is_whole:
            return None, NO_VERSION
        if not self._has_secrets:
            return frame.data, version
        try:
            message = exchange.request_message() if self._is_request else exchange.response_message()
            assert message is not None  # the frame is complete and its version known
            return message.encode(version=version), version
        except KwireError:
            return None, NO_VERSION

"""Other Python codecs, as (decode, encode) of a case, or None if a codec does not support it.

kio creates frozen dataclasses with enums and timedeltas, without unknown tagged fields; kafka-python creates containers
with a version; aiokafka supports no flexible versions. Codecs that can encode must produce the same bytes as kwire.
"""

from __future__ import annotations

import importlib
import io
import re
from collections.abc import Callable

Jobs = tuple[Callable[[], object], Callable[[], bytes]]


def kio(name: str, version: int, wire: bytes) -> Jobs | None:
    """Readers in Rust, writers in Python."""
    try:
        from kio.serial import entity_reader, entity_writer
    except ImportError:
        return None
    found = re.match(r"(.*?)(Request|Response|Header)$", name)
    assert found
    api, kind = found.groups()
    snake = "request_header" if name == "RequestHeader" else re.sub(r"(?<=[a-z])([A-Z])", r"_\1", api).lower()
    cls = getattr(importlib.import_module(f"kio.schema.{snake}.v{version}.{kind.lower()}"), name)
    read, write = entity_reader(cls), entity_writer(cls)
    obj = read(wire, 0)[0]

    def encode() -> bytes:
        out = io.BytesIO()
        write(out, obj)
        return out.getvalue()

    return lambda: read(wire, 0), encode


def kafka_python(name: str, version: int, wire: bytes) -> Jobs | None:
    """Pure Python."""
    try:
        import kafka.protocol.consumer
        import kafka.protocol.metadata
        import kafka.protocol.producer
        from kafka.protocol.api_header import RequestHeader
    except ImportError:
        return None
    if name == "RequestHeader":
        header = RequestHeader.decode(io.BytesIO(wire), flexible=True)
        return lambda: RequestHeader.decode(io.BytesIO(wire), flexible=True), lambda: header.encode(flexible=True)
    modules = kafka.protocol.consumer, kafka.protocol.metadata, kafka.protocol.producer
    cls = next(getattr(module, name) for module in modules if hasattr(module, name))
    obj = cls.decode(wire, version=version)
    obj._header = None  # required by 3.0.12 to encode a decoded message
    return lambda: cls.decode(wire, version=version), lambda: obj.encode(version=version)


def aiokafka(name: str, version: int, wire: bytes) -> Jobs | None:
    """Pure Python."""
    classes = {
        ("MetadataResponse", 5): ("aiokafka.protocol.metadata", "MetadataResponse_v5"),
        ("FetchResponse", 11): ("aiokafka.protocol.fetch", "FetchResponse_v11"),
        ("ProduceRequest", 7): ("aiokafka.protocol.produce", "ProduceRequest_v7"),
    }
    if (name, version) not in classes:
        return None
    module, cls_name = classes[name, version]
    try:
        cls = getattr(importlib.import_module(module), cls_name)
    except ImportError:
        return None
    obj = cls.decode(wire)
    return lambda: cls.decode(wire), obj.encode


PEERS: dict[str, Callable[[str, int, bytes], Jobs | None]] = {
    "kio": kio,
    "kafka-python": kafka_python,
    "aiokafka": aiokafka,
}

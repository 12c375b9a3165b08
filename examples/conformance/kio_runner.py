"""kio as a runner: pip install kio; kwire conformance codec -- python kio_runner.py

Its values are Python's own types, such as timedelta, so that only bytes of decoded and encoded objects are compared.
"""

import binascii
import functools
import io
import json
import re
import sys

from kio.index import UnknownEntity, load_entity_schema
from kio.serial import entity_reader, entity_writer, readers, writers
from kio.static.constants import EntityType

PRIMITIVES = {
    "BOOLEAN": "boolean",
    "INT8": "int8",
    "INT16": "int16",
    "INT32": "int32",
    "INT64": "int64",
    "UINT16": "uint16",
    "UNSIGNED_INT32": "uint32",
    "FLOAT64": "float64",
    "UUID": "uuid",
    "VARINT": "signed_varint",
    "VARLONG": "signed_varlong",
    "STRING": "legacy_string",
    "NULLABLE_STRING": "nullable_legacy_string",
    "COMPACT_STRING": "compact_string",
    "COMPACT_NULLABLE_STRING": "compact_string_nullable",
    "BYTES": "legacy_bytes",
    "NULLABLE_BYTES": "nullable_legacy_bytes",
    "COMPACT_BYTES": "compact_string_as_bytes",
    "COMPACT_NULLABLE_BYTES": "compact_string_as_bytes_nullable",
}


@functools.cache
def codec(chapter, type, version):  # None if there is none
    if chapter == "primitives":
        name = PRIMITIVES[type]
        return getattr(readers, f"read_{name}", None), getattr(writers, f"write_{name}", None)
    stem, kind = re.fullmatch(r"(.*?)(Request|Response|RequestHeader|ResponseHeader|)", type).groups()
    snake = re.sub(r"(?<!^)(?=[A-Z])", "_", type if kind in ("", type) else stem).lower()
    kinds = {"": EntityType.data, "Request": EntityType.request, "Response": EntityType.response}
    try:
        cls = load_entity_schema(snake, version, kinds.get(kind, EntityType.header))
    except UnknownEntity:
        return None, None
    return entity_reader(cls), entity_writer(cls)


def run(op, chapter, type, version, release, bytes="", value=None):
    if op == "encode" or chapter not in ("primitives", "messages", "headers"):
        return {"unsupported": "decodes primitives, messages and headers"}
    reader, writer = codec(chapter, type, version)
    if reader is None:
        return {"unsupported": "no such entity"}
    decoded, _ = reader(binascii.unhexlify(bytes), 0)
    if writer is None:
        return {"accepted": True}
    writer(out := io.BytesIO(), decoded)
    return {"bytes": out.getvalue().hex()}


while head := sys.stdin.buffer.read(4):
    try:
        response = run(**json.loads(sys.stdin.buffer.read(int.from_bytes(head, "big"))))
    except Exception as error:  # kio raises what its readers meet
        response = {"rejected": f"{type(error).__name__}: {error}"}
    text = json.dumps(response).encode()
    sys.stdout.buffer.write(len(text).to_bytes(4, "big") + text)
    sys.stdout.buffer.flush()

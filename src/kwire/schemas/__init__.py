"""Schema registries: values written with Confluent's serializers as Arrow columns, and back.

    from kwire.schemas import Registry, decode_arrow, encode_arrow

    registry = Registry("http://localhost:8081")
    orders = decode_arrow(values, registry, topic="orders")
    values = encode_arrow(orders, registry, topic="orders")

Avro, Protobuf and JSON Schema. For Spark: from_registry and to_registry in kwire.spark.functions. JSON values without a
registry: decode_json, infer_json. See docs/schemas.md.
Names import their modules on first access.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from kwire.extras import needing

if TYPE_CHECKING:
    from kwire.schemas.choice import subject_name as subject_name
    from kwire.schemas.csv_values import decode_csv as decode_csv
    from kwire.schemas.csv_values import infer_csv as infer_csv
    from kwire.schemas.ddl import ddl_of as ddl_of
    from kwire.schemas.ddl import parse_ddl as parse_ddl
    from kwire.schemas.functions import decode as decode
    from kwire.schemas.functions import decode_arrow as decode_arrow
    from kwire.schemas.functions import encode as encode
    from kwire.schemas.functions import encode_arrow as encode_arrow
    from kwire.schemas.functions import schema_type as schema_type
    from kwire.schemas.functions import union_type as union_type
    from kwire.schemas.json_inference import infer_json as infer_json
    from kwire.schemas.registered import Reference as Reference
    from kwire.schemas.registered import RegisteredSchema as RegisteredSchema
    from kwire.schemas.registry import Registry as Registry
    from kwire.schemas.typed_json import decode_json as decode_json
    from kwire.schemas.wire_format import schema_ids as schema_ids

_HOMES = {
    "Reference": "kwire.schemas.registered",
    "RegisteredSchema": "kwire.schemas.registered",
    "Registry": "kwire.schemas.registry",
    "ddl_of": "kwire.schemas.ddl",
    "decode": "kwire.schemas.functions",
    "decode_arrow": "kwire.schemas.functions",
    "decode_csv": "kwire.schemas.csv_values",
    "decode_json": "kwire.schemas.typed_json",
    "encode": "kwire.schemas.functions",
    "encode_arrow": "kwire.schemas.functions",
    "infer_csv": "kwire.schemas.csv_values",
    "infer_json": "kwire.schemas.json_inference",
    "parse_ddl": "kwire.schemas.ddl",
    "schema_ids": "kwire.schemas.wire_format",
    "schema_type": "kwire.schemas.functions",
    "subject_name": "kwire.schemas.choice",
    "union_type": "kwire.schemas.functions",
}

__all__ = [*_HOMES]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with needing("values of schema registries", "registry"):
        module = import_module(_HOMES[name])
    value = globals()[name] = getattr(module, name)
    return value

"""kwire as a runner: kwire conformance codec -- python kwire_runner.py"""

import functools
import json
import sys

from kwire import schema
from kwire.conformance.vectors import batch_value
from kwire.errors import KwireError
from kwire.messages import registry
from kwire.protocol import record_values, requests
from kwire.wire import varint

NAMES = {"BOOLEAN": "bool", "UNSIGNED_INT32": "uint32"}


@functools.cache
def primitive(name):  # a message with one field of the type; version 1 is flexible and ends with an empty tag section
    field = {"name": "F", "type": NAMES.get(name, name.split("_")[-1].lower()), "versions": "0+"}
    field |= {"nullableVersions": "0+"} if "NULLABLE" in name else {}
    definition = {"type": "data", "name": "P", "validVersions": "0-1", "flexibleVersions": "1+", "fields": [field]}
    return schema.compile(schema.parse(json.dumps(definition))), int("COMPACT" in name)


def run(op, chapter, type, version, release, bytes="", value=None):
    data, name = bytearray.fromhex(bytes), type.lower()
    if chapter == "batches":
        return {"value": batch_value(data)} if op == "decode" else {"unsupported": "only reads batches"}
    if name in ("varint", "varlong"):
        if op == "decode":
            return {"value": getattr(varint, f"read_{name}")(data, 0)[0]}
        return {"bytes": (getattr(varint, f"write_{name}")(data, value), data.hex())[1]}
    if chapter == "primitives":
        cls, version = primitive(type)
        if op == "encode":
            return {
                "bytes": cls.from_json({"f": value}, version=version).encode(version=version)[: -version or None].hex()
            }
        return {"value": cls.decode(data + b"\0" * version, version=version).to_json(version=version)["f"]}
    cls = registry.get(type, kafka=release)
    kind, head = cls.SPEC.kind, cls.SPEC.header_version(version)
    if chapter == "data" and kind == "metadata" and release.startswith("2.8."):
        return {"unsupported": "metadata records of 2.8, whose frame version is 0"}
    if chapter == "frames":
        codec = getattr(requests, f"{kind}_codec")(cls.API_KEY, version, release)
        if op == "encode":
            header = registry.get(f"{kind.title()}Header").from_json(value["header"], version=head)
            return {"bytes": codec.encode((header, cls.from_json(value["body"], version=version))).hex()}
        if kind == "request":
            requests.read_request(data, kafka=release)  # checks the API key too
        header, body = codec.decode(data)
        return {"value": {"header": header.to_json(version=head), "body": body.to_json(version=version)}}
    if op == "encode":
        obj = cls.from_json(value, version=version)
    elif chapter == "data" and kind == "metadata":
        obj, _ = record_values.read_metadata_record(data, kafka=release)
    else:
        obj = record_values.read_prefixed(cls, data)[0] if chapter == "data" else cls.decode(data, version=version)
    write = record_values.write_metadata_record if kind == "metadata" else record_values.write_prefixed
    again = write(obj, version) if chapter == "data" else obj.encode(version=version)
    return {"bytes": again.hex(), "value": obj.to_json(version=version)}


def main():
    while head := sys.stdin.buffer.read(4):
        try:
            response = run(**json.loads(sys.stdin.buffer.read(int.from_bytes(head, "big"))))
        except KwireError as error:
            response = {"rejected": str(error)}
        text = json.dumps(response).encode()
        sys.stdout.buffer.write(len(text).to_bytes(4, "big") + text)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()

"""kafka-python as a runner: kwire conformance codec -- python kafka_python_runner.py"""

import base64
import binascii
import importlib
import json
import pkgutil
import sys

from kafka.protocol.api_message import ApiMessage
from kafka.record.memory_records import MemoryRecords

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
TYPES = {None: "NoTimestampType", 0: "CreateTime", 1: "LogAppendTime"}


for package in ("admin", "consumer", "metadata", "producer", "sasl"):
    module = importlib.import_module(f"kafka.protocol.{package}")
    for each in pkgutil.iter_modules(getattr(module, "__path__", ())):
        importlib.import_module(f"{module.__name__}.{each.name}")
CLASSES = {cls.__name__: cls for cls in ApiMessage.__subclasses__()}


def run(op, chapter, type, version, release, bytes="", value=None):
    if op == "encode":
        return {"unsupported": "decodes only"}
    data = binascii.unhexlify(bytes)
    if chapter == "batches":
        return {"value": batches(data)}
    cls = CLASSES.get(type) if chapter == "messages" else None
    if cls is None or version > cls.max_version:
        return {"unsupported": "no such message"}
    message = cls.decode(data, version=version)
    message.with_header()  # which some need to encode their body
    return {"bytes": message.encode().hex()}


def batches(data):  # as its consumer reads them, which checks the checksum of each
    headers, records, reader = [], [], MemoryRecords(data)
    while reader.has_next():
        batch = reader.next_batch()
        if not batch.validate_crc():
            raise ValueError("wrong checksum")
        own = [record(len(headers), each) for each in batch]
        headers.append(header(batch, own))
        records += own
    return {"batches": headers, "records": records, "incompleteBytes": len(data) - reader.valid_bytes()}


def record(batch, each):
    headers = [[name, text(value)] for name, value in each.headers]
    value = {"batch": batch, "offset": each.offset, "headers": headers, "key": text(each.key)}
    return {**value, "timestamp": -1 if each.timestamp is None else each.timestamp, "value": text(each.value)}


def header(batch, records):
    fields = {"magic": batch.magic, "sizeInBytes": batch.size_in_bytes, "codec": CODECS[batch.compression_type]}
    fields["timestampType"] = TYPES[batch.timestamp_type]
    if batch.magic < 2:  # whose ends are in the records
        fields |= {"baseOffset": records[0]["offset"], "lastOffset": records[-1]["offset"]}
        return {**fields, "maxTimestamp": max(each["timestamp"] for each in records)}
    fields |= {"producerId": batch.producer_id, "producerEpoch": batch.producer_epoch, "crc": batch.crc}
    fields |= {"baseSequence": batch.base_sequence, "partitionLeaderEpoch": batch.leader_epoch}
    fields |= {"isTransactional": batch.is_transactional, "isControl": batch.is_control_batch}
    fields |= {"baseOffset": batch.base_offset, "lastOffset": batch.last_offset, "count": batch.records_count}
    return {**fields, "lastSequence": batch.last_sequence, "maxTimestamp": batch.max_timestamp}


def text(data):
    return None if data is None else base64.b64encode(data).decode()


while head := sys.stdin.buffer.read(4):
    try:
        response = run(**json.loads(sys.stdin.buffer.read(int.from_bytes(head, "big"))))
    except Exception as error:  # whatever its readers stumble over; RuntimeError if a library is not installed
        response = {"unsupported" if isinstance(error, RuntimeError) else "rejected": repr(error)}
    answer = json.dumps(response).encode()
    sys.stdout.buffer.write(len(answer).to_bytes(4, "big") + answer)
    sys.stdout.buffer.flush()

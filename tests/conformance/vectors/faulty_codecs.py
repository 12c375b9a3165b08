"""Twenty faults in a codec, each as a change of what kwire's runner answers; and the cases that are enough to find it.

Each is a fault that an implementation had, or an easy mistake: a wrong boundary, a missing check, a lost bit.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

ABOUT = ("chapter", "type", "version", "release")

Json = dict[str, Any]
Ask = Callable[[Json], Json]


@dataclass(frozen=True, slots=True)
class Fault:
    """name: what is wrong. where: beginnings of ids of the cases to run. ask: a faulty codec, made of a correct one."""

    name: str
    where: tuple[str, ...]
    codec: Callable[[Ask], Ask]


def changed_value(change: Callable[[Any], Any]) -> Callable[[Ask], Ask]:
    """A decoder that changes values, each inner one too."""

    def deep(value: Any) -> Any:
        if isinstance(value, dict):
            value = {key: deep(each) for key, each in value.items()}
        elif isinstance(value, list):
            value = [deep(each) for each in value]
        return change(value)

    def codec(ask: Ask) -> Ask:
        def faulty(task: Json) -> Json:
            response = ask(task)
            if "value" in response and task["op"] == "decode":
                return {"value": deep(response["value"])}
            return response

        return faulty

    return codec


def decoder(change: Callable[[Json, Ask], Json]) -> Callable[[Ask], Ask]:
    """A codec whose decoder is replaced."""
    return lambda ask: lambda task: change(task, ask) if task["op"] == "decode" else ask(task)


def encoder(change: Callable[[Json, Ask], Json]) -> Callable[[Ask], Ask]:
    """A codec whose encoder is replaced."""
    return lambda ask: lambda task: change(task, ask) if task["op"] == "encode" else ask(task)


def records(change: Callable[[Json, Json], None]) -> Callable[[Ask], Ask]:
    """A decoder that changes each record, given with its batch."""

    def codec(ask: Ask) -> Ask:
        def faulty(task: Json) -> Json:
            response = ask(task)
            for each in response.get("value", {}).get("records", ()):
                change(each, response["value"]["batches"][each["batch"]])
            return response

        return faulty

    return codec


def without_zigzag(task: Json, ask: Ask) -> Json:
    value, shift = 0, 0
    for byte in bytes.fromhex(task["bytes"]):
        value |= (byte & 0x7F) << shift
        shift += 7
    return {"value": value}


def nine_bytes_only(task: Json, ask: Ask) -> Json:
    return {"rejected": "varlong of ten bytes"} if len(task["bytes"]) == 20 else ask(task)


def one_byte_lengths(task: Json, ask: Ask) -> Json:
    """Write a compact length of 128 in one byte."""
    response = ask(task)
    return {"bytes": response["bytes"].replace("8001", "80", 1)} if response["bytes"].startswith("8001") else response


def padded(task: Json, ask: Ask) -> Json:
    """Read zeros after the end of the bytes."""
    response = ask(task)
    return ask({**task, "bytes": task["bytes"] + "00"}) if "rejected" in response else response


def unsigned_int64(value: Any) -> Any:
    return value + 2**64 if isinstance(value, int) and value < -(2**31) else value


def first_bool_only(task: Json, ask: Ask) -> Json:
    return {"value": task["bytes"] == "01"}


def no_unknown_tags(task: Json, ask: Ask) -> Json:
    """Refuse bytes that are not those of the value, as it is with unknown tagged fields."""
    response = ask(task)
    if "rejected" in response:
        return response
    again = ask({**{key: task[key] for key in ABOUT}, "op": "encode", "value": response["value"]})
    return response if again["bytes"] == task["bytes"] else {"rejected": "unknown tagged field"}


def with_new_checksum(task: Json, ask: Ask) -> Json:
    """Read batches of magic 2 without a look at their checksum."""
    import google_crc32c

    data = bytearray.fromhex(task["bytes"])
    if len(data) > 61 and data[16] == 2:
        size = 12 + struct.unpack_from(">i", data, 8)[0]
        struct.pack_into(">I", data, 17, google_crc32c.value(bytes(data[21:size])))
    return ask({**task, "bytes": data.hex()})


def with_count_of_records(task: Json, ask: Ask) -> Json:
    """Read as many records as there are, whatever the batch says."""
    for count in range(1, 8):
        data = bytearray.fromhex(task["bytes"])
        if len(data) > 61 and data[16] == 2:
            struct.pack_into(">i", data, 57, count)
        response = with_new_checksum({**task, "bytes": data.hex()}, ask)
        if "rejected" not in response:
            return response
    return ask(task)


def relative_offset(each: Json, batch: Json) -> None:
    if batch["magic"] == 1 and batch["codec"] != "none":
        each["offset"] -= batch["baseOffset"]


def own_time(each: Json, batch: Json) -> None:
    if batch["timestampType"] == "LogAppendTime":
        each["timestamp"] -= 77


def one_header_a_name(each: Json, batch: Json) -> None:
    each["headers"] = [list(pair) for pair in dict(map(tuple, each["headers"])).items()]


def empty_for_null(each: Json, batch: Json) -> None:
    each["value"] = each["value"] or ""


def early_time(each: Json, batch: Json) -> None:
    if each["timestamp"] < batch["maxTimestamp"]:
        each["timestamp"] += 2**32


def flexible_header(task: Json, ask: Ask) -> Json:
    """Write a tag section into the header of every flexible response, that of ApiVersions too."""
    response = ask(task)
    text = response["bytes"]
    return {"bytes": f"{int(text[:8], 16) + 1:08x}{text[8:16]}00{text[16:]}"}


def compact_client_id(task: Json, ask: Ask) -> Json:
    """Write the client id as KIP-482 first had it."""
    text = ask(task)["bytes"]
    client = (task["value"]["header"].get("clientId") or "").encode()
    return {"bytes": f"{int(text[:8], 16) - 1:08x}{text[8:24]}{len(client) + 1:02x}{text[28:]}"}


def any_frame_version(task: Json, ask: Ask) -> Json:
    return ask({**task, "bytes": "01" + task["bytes"][2:]})


def defaults_of_tags(task: Json, ask: Ask) -> Json:
    """Write an empty tagged field, which is its default."""
    text = ask(task)["bytes"]
    return {"bytes": text[:-2] + "01" + "00" + "0101"} if text.endswith("00") else {"bytes": text}


def swapped_uuid(value: Any) -> Any:
    if isinstance(value, str) and len(value) == 22 and value != "A" * 22:
        raw = base64.urlsafe_b64decode(value + "==")
        return base64.urlsafe_b64encode(raw[8:] + raw[:8]).decode().rstrip("=")
    return value


def all_faults() -> Iterator[Fault]:
    """Return the faults."""
    fetch, topics = "messages/FetchRequest", "messages/MetadataResponse/12"
    yield Fault("varints without zigzag", ("primitives/VARINT",), decoder(without_zigzag))
    yield Fault("varlongs of nine bytes at most", ("primitives/VARLONG",), decoder(nine_bytes_only))
    yield Fault("compact lengths of one byte up to 128", ("primitives/COMPACT_STRING",), encoder(one_byte_lengths))
    yield Fault("zeros after the end", ("messages/HeartbeatRequest",), decoder(padded))
    yield Fault("int64 without a sign", (fetch,), changed_value(unsigned_int64))
    yield Fault("only 1 is true", ("primitives/BOOLEAN",), decoder(first_bool_only))
    yield Fault("null arrays are empty", ("messages/MetadataRequest",), changed_value(lambda v: [] if v is None else v))
    yield Fault("empty strings are null", (topics,), changed_value(lambda v: None if v == "" else v))
    yield Fault("unknown tags are errors", (topics,), decoder(no_unknown_tags))
    yield Fault("tagged fields with defaults are written", (f"{fetch}/13",), encoder(defaults_of_tags))
    yield Fault("halves of uuids are swapped", (topics,), changed_value(swapped_uuid))
    yield Fault("checksums are ignored", ("batches/records/2",), decoder(with_new_checksum))
    yield Fault("the count of records is ignored", ("batches/records/2",), decoder(with_count_of_records))
    yield Fault("offsets in wrappers are relative", ("batches/records/1",), records(relative_offset))
    yield Fault("LogAppendTime is ignored", ("batches/records/2",), records(own_time))
    yield Fault("headers with one name are one", ("batches/records/2",), records(one_header_a_name))
    yield Fault("tombstones are empty values", ("batches/records/2",), records(empty_for_null))
    yield Fault("negative timestamp deltas wrap at 32 bits", ("batches/records/2",), records(early_time))
    yield Fault("ApiVersions has a flexible header", ("frames/ApiVersionsResponse",), encoder(flexible_header))
    yield Fault("the client id is compact", ("frames/ApiVersionsRequest/3",), encoder(compact_client_id))
    yield Fault("any frame version is read", ("data/TopicRecord",), decoder(any_frame_version))

"""What does packing integers save in a MetadataResponse, in bytes and time, compared to the table of KIP-625?

The message of the KIP: the body of a response with one topic, 100 partitions and two brokers. Every int16 and int32 of
MetadataResponse version 9, the latest when the KIP was written, is fixed in version 0 of our definition, packed in
version 1 and unsigned packed in version 2, with one `encoding` per field (for lists of node ids, of their elements).

    best      one byte per number where possible: brokers 1 and 2, partitions 0 to 99, no errors, no operations
    worst     the largest numbers, except for the ports: 5 bytes for 4, 3 for 2
    hosts     host-1.example.com, host-2.example.com; topic "topic"; cluster id of 22 letters; racks null

The KIP's totals (3216, 1170 and 4026 bytes) cannot come from any version of this message: `impossible` says why.
"""

from __future__ import annotations

import json
from typing import Any

from benchmarks.messages.timing import cpu_us, line
from kwire import plan, schema
from kwire.messages import registry
from kwire.schema.model import ENCODABLE

KIP_BYTES = {"fixed": 3216, "best": 1170, "worst": 4026}
PARTITIONS = 100
VERSION = 9
FIXED, PACKED, UNSIGNED = 0, 1, 2


def definition() -> schema.Message:
    """Return the definition with MetadataResponse version 9 as version 0, and its packed forms as versions 1 and 2."""
    spec = json.loads(schema.render(registry.get("MetadataResponse", kafka="2.8.2").SPEC))
    spec |= {"type": "data", "name": "Metadata", "validVersions": "0-2", "flexibleVersions": "0+"}
    del spec["apiKey"]
    spec["fields"] = _encoded(spec["fields"])
    return schema.parse(json.dumps(spec))


def _encoded(fields: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = []
    for old in fields:
        if VERSION not in schema.Versions.parse(old["versions"]):
            continue
        field = {key: old[key] for key in ("name", "type", "default", "fields") if key in old} | {"versions": "0+"}
        if "nullableVersions" in old:
            field["nullableVersions"] = "0+"
        if "fields" in field:
            field["fields"] = _encoded(field["fields"])
        elif field["type"].removeprefix("[]") in ENCODABLE:
            bits = field["type"].removeprefix("[]").removeprefix("int")
            field["encoding"] = {"0": f"fixed{bits}", "1": f"packed{bits}", "2+": f"upacked{bits}"}
        found.append(field)
    return found


def response(cls: Any, *, worst: bool) -> Any:
    """Return the message of the KIP with the smallest or largest numbers."""
    top, error = (2**31 - 1, 2**15 - 1) if worst else (0, 0)
    nodes = [top - 1, top] if worst else [1, 2]

    def partition(index: int) -> Any:
        return cls.MetadataResponsePartition(
            error_code=error,
            partition_index=top - index if worst else index,
            leader_id=nodes[index % 2],
            leader_epoch=top if worst else 1,
            replica_nodes=list(nodes),
            isr_nodes=list(nodes),
        )

    topic = cls.MetadataResponseTopic(
        error_code=error,
        name="topic",
        partitions=[partition(i) for i in range(PARTITIONS)],
        topic_authorized_operations=top,
    )
    brokers = [
        cls.MetadataResponseBroker(node_id=node, host=f"host-{i}.example.com", port=9092)
        for i, node in enumerate(nodes, start=1)
    ]
    return cls(
        throttle_time_ms=top,
        brokers=brokers,
        cluster_id="abcdefghijklmnopqrstuv",
        controller_id=nodes[0],
        topics=[topic],
        cluster_authorized_operations=top,
    )


def impossible() -> str:
    """Check that no MetadataResponse of one topic with 100 partitions has the KIP's three sizes."""
    most_int16 = PARTITIONS + 1  # the partitions' and the topic's error code
    int32 = KIP_BYTES["worst"] - KIP_BYTES["fixed"] - most_int16  # each integer grows by a byte at most
    integers = 4 * int32 + 2 * most_int16
    return (
        f"a packed int16 or int32 is at most 1 byte longer than a fixed one, so the worst case needs "
        f"{KIP_BYTES['worst'] - KIP_BYTES['fixed']} of them; at most {most_int16} are int16, so at least {int32} are "
        f"int32; fixed, these take {integers} of the {KIP_BYTES['fixed']} bytes and leave "
        f"{KIP_BYTES['fixed'] - integers}, fewer than the {2 * PARTITIONS} that the counts of the partitions' replicas "
        f"and in-sync replicas alone need"
    )


def main() -> None:
    """Print the figures."""
    spec = definition()
    cls: Any = schema.compile(spec)
    cases = {
        "fixed": (FIXED, response(cls, worst=False)),
        "best": (PACKED, response(cls, worst=False)),
        "worst": (PACKED, response(cls, worst=True)),
        "best.unsigned": (UNSIGNED, response(cls, worst=False)),
        "worst.unsigned": (UNSIGNED, response(cls, worst=True)),
    }
    jobs: dict[str, dict[str, Any]] = {"encode": {}, "decode": {}}
    sizes = {}
    for name, (version, obj) in cases.items():
        codec = plan.codec(spec, version, cls, kernels=True)
        wire = codec.encode(obj)
        assert codec.decode(wire) == obj
        sizes[name] = len(wire)
        jobs["encode"][name] = lambda codec=codec, obj=obj: codec.encode(obj)
        jobs["decode"][name] = lambda codec=codec, wire=wire: codec.decode(wire)
    for name, size in sizes.items():
        peer = KIP_BYTES.get(name.partition(".")[0])
        print(f"messages.kip625.size.{name} {size} bytes {size / peer:.3g} KIP-625:{peer}" if peer else "")
        print(
            line(f"messages.kip625.size.{name}.by_fixed", size / sizes["fixed"], "x", peer and peer / 3216, "KIP-625")
        )
    for way, contenders in jobs.items():
        best = cpu_us(contenders)
        for name in cases:
            print(line(f"messages.kip625.{way}.{name}", best[name], "us", best["fixed"], "fixed"))
    print(f"# {impossible()}")


if __name__ == "__main__":
    main()

"""How often are large records copied?

FetchResponse v12 with 4, 40 and 100 times 1 MB of records, compared to a copy of these bytes and other Python codecs.
CPU us per call.
"""

from __future__ import annotations

import os
from typing import Any

from benchmarks.messages.peers import PEERS
from benchmarks.messages.timing import cpu_us, line
from kwire import plan
from kwire.messages import registry

VERSION = 12


def measure(megabytes: int) -> None:
    """Print the figures of a message."""
    cls: Any = registry.get("FetchResponse")
    partitions = [cls.PartitionData(partition_index=i, records=os.urandom(1 << 20)) for i in range(megabytes)]
    obj = cls(responses=[cls.FetchableTopicResponse(topic="t", partitions=partitions)])
    codec = plan.codec(cls.SPEC, VERSION, cls, kernels=True)
    wire = codec.encode(obj)
    view = memoryview(wire)
    jobs: dict[str, Any] = {
        "decode": lambda: codec.decode(wire),
        "decode.views": lambda: codec.decode(wire, views=True),
        "encode": lambda: codec.encode(obj),
        "copy": lambda: bytes(view),
    }
    for peer, jobs_of in PEERS.items():
        made = jobs_of("FetchResponse", VERSION, wire)
        if made is not None:
            jobs[f"decode.{peer}"], jobs[f"encode.{peer}"] = made
    best = cpu_us(jobs, rounds=11)
    for name in ("decode", "decode.views", "encode"):
        label = f"messages.blobs.{name}.{megabytes}MB"
        print(line(label, best[name], "us", best["copy"], "copy"))
        for peer in PEERS:
            other = f"{name.partition('.')[0]}.{peer}"
            if other in best:
                print(line(label, best[name], "us", best[other], peer))


def main() -> None:
    """Print the figures."""
    for megabytes in (4, 40, 100):
        measure(megabytes)


if __name__ == "__main__":
    main()

"""How fast are message bodies decoded to an Arrow table, compared to decoding them to objects first?

10 000 MetadataResponse v9 bodies, 200 000 partitions. Target (docs/design.md): 10 M rows/s with seven columns.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.messages.cases import metadata_bodies
from benchmarks.messages.timing import cpu_us, line
from kwire import plan
from kwire.messages import registry
from kwire.plan.columns import ColumnReader

NUMBERS = [
    "topics[].partitions[].partition_index",
    "topics[].partitions[].leader_id",
    "topics[].partitions[].leader_epoch",
]
SEVEN = [
    *NUMBERS,
    "topics[].name",
    "topics[].partitions[].replica_nodes",
    "topics[].partitions[].isr_nodes",
    "controller_id",
]


def main() -> None:
    """Print the figures."""
    bodies = metadata_bodies(10_000)
    data = b"".join(bodies)
    starts = np.zeros(len(bodies) + 1, np.int64)
    np.cumsum([len(body) for body in bodies], out=starts[1:])
    cls = registry.get("MetadataResponse")
    codec = plan.codec(cls.SPEC, 9, cls, kernels=True)
    few = bodies[:500]

    def objects() -> pa.Table:
        values: list[list[object]] = [[] for _ in SEVEN]
        for body in few:
            message = codec.decode(body)
            for topic in message.topics:
                for p in topic.partitions:
                    row = (p.partition_index, p.leader_id, p.leader_epoch, topic.name, p.replica_nodes, p.isr_nodes)
                    for column, value in zip(values, (*row, message.controller_id), strict=True):
                        column.append(value)
        return pa.table(dict(zip(SEVEN, values, strict=True)))

    three, seven = ColumnReader(cls.SPEC, 9, NUMBERS), ColumnReader(cls.SPEC, 9, SEVEN)
    rows, few_rows = seven.read(data, starts).num_rows, objects().num_rows
    best = cpu_us(
        {"three": lambda: three.read(data, starts), "seven": lambda: seven.read(data, starts), "objects": objects},
        rounds=9,
    )
    through_objects = best["objects"] / few_rows * 1000
    for name, columns in (("three", "3_int_columns"), ("seven", "7_columns")):
        ns = best[name] / rows * 1000
        print(line(f"messages.columns.{columns}", ns, "ns/row", through_objects, "objects-then-Arrow"))
        print(line(f"messages.columns.{columns}.rate", 1000 / ns, "M_rows/s"))


if __name__ == "__main__":
    main()

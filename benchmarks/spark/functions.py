"""How fast do from_kafka and to_kafka convert messages to columns and back, compared to a Python UDF?

MetadataResponse v9 (20 partitions each) and OffsetCommitValue v3, in batches of 10,000 rows as from Spark. The peer
does what a UDF has to do: decode objects with the compiled codec, convert them to dicts, and the dicts to Arrow. These
are costs of the Python worker; those of the JVM are equal for both.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from benchmarks.messages.cases import metadata_bodies
from benchmarks.messages.timing import cpu_us, line

from kwire import plan
from kwire.messages import OffsetCommitValue, registry
from kwire.plan.nested_columns import NestedReader, version_type
from kwire.plan.nested_writing import NestedWriter
from kwire.schema.model import Struct

ROWS = 10_000
FEW = 500


def row_of(obj: Any, struct: Struct, version: int) -> dict[str, Any]:
    """Convert a message to the dict that a UDF returns. (These messages have no uuids, and structs only in arrays.)"""
    found = {}
    for f in struct.fields:
        if version in f.versions:
            value = getattr(obj, f.attr)
            found[f.attr] = value if f.struct is None else [row_of(each, f.struct, version) for each in value]
    return found


def main() -> None:
    """Print the figures."""
    commits = [OffsetCommitValue(offset=i, metadata="m", commit_timestamp=i).encode(version=3) for i in range(ROWS)]
    cases = (("MetadataResponse", 9, metadata_bodies(ROWS)), ("OffsetCommitValue", 3, commits))
    for name, version, bodies in cases:
        cls = registry.get(name)
        codec = plan.codec(cls.SPEC, version, cls, kernels=True)
        kind = version_type(cls.SPEC, version)
        batch, few = pa.array(bodies, pa.binary()), pa.array(bodies[:FEW], pa.binary())
        reader, writer = NestedReader(cls.SPEC, version), NestedWriter(cls.SPEC, version, cls)
        structs = reader.read(few)

        def udf(
            few: pa.Array = few, codec: Any = codec, cls: Any = cls, version: int = version, kind: Any = kind
        ) -> Any:
            return pa.array([row_of(codec.decode(each), cls.SPEC.struct, version) for each in few.to_pylist()], kind)

        assert udf().equals(structs)
        assert writer.write(structs).equals(few)
        best = cpu_us(
            {
                "read": lambda reader=reader, batch=batch: reader.read(batch),
                "udf": udf,
                "write": lambda writer=writer, structs=structs: writer.write(structs),
            },
            rounds=5,
        )
        read, by_row = best["read"] / ROWS * 1000, best["udf"] / FEW * 1000
        print(line(f"spark.functions.from_kafka.{name}", 1e6 / read, "k_rows/s", 1e6 / by_row, "Python-UDF"))
        print(line(f"spark.functions.to_kafka.{name}", 1e9 / (best["write"] / FEW * 1000) / 1000, "k_rows/s"))


if __name__ == "__main__":
    main()

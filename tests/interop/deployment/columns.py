"""Column functions, and the examples of their pages."""

from __future__ import annotations

import json
import os
from typing import Any

from given import Given

from kwire.capture import read_capture
from kwire.spark.functions import from_kafka, schema_registry_id, schema_registry_payload, to_kafka


def messages(given: Given) -> None:
    path = str(given.captures / "k391.clean.pcap")
    frames = given.spark.read.format("kafka-capture").options(bodies="bytes", apis="Produce,Metadata").load(path)
    for api, message, version in (("Produce", "ProduceRequest", 11), ("Metadata", "MetadataRequest", 12)):
        chosen = frames.where(f"api = '{api}' AND api_version = {version}")
        bodies = chosen.select(
            "connection", "correlation_id", from_kafka("request", message, version, {"header": True}).alias("m")
        )
        again = bodies.select("*", to_kafka("m", message, version).alias("bytes"))
        found = {(row.connection, row.correlation_id): row for row in again.collect()}
        expected = {
            (each.connection, each.correlation_id): each.request_message()
            for each in read_capture(path)
            if (each.api_name, each.api_version) == (api, version)
        }
        assert found.keys() == expected.keys()
        for place, each in expected.items():
            assert bytes(found[place].bytes) == each.encode(version=version)
    assert len(expected) > 20


def registry(given: Given) -> None:
    payloads = [b"\0" + (1000 + n).to_bytes(4, "big") + b"payload %d" % n for n in range(100)]
    frame = given.spark.createDataFrame([(bytearray(each),) for each in payloads], "value binary").repartition(2)
    found = frame.select(schema_registry_id("value").alias("id"), schema_registry_payload("value").alias("rest"))
    assert {(int(row.id), bytes(row.rest)) for row in found.collect()} == {
        (1000 + n, b"payload %d" % n) for n in range(100)
    }


def pages(given: Given) -> None:
    for page, blocks in given.pages.items():
        names: dict[str, Any] = {"__name__": "example", "spark": given.spark}
        for number, block in enumerate(blocks):
            exec(compile(block, f"{page}, example {number}", "exec"), names)


def places(given: Given) -> None:
    """Check where the Python workers import kwire from, and that it has compiled code."""
    found = [json.loads(row[0]) for row in look(given.spark).collect()]
    for each in found:
        assert "/site-packages/kwire/__init__.py" in each["kwire"], each["kwire"]
        assert each["found"] == [os.path.dirname(os.path.dirname(each["kwire"]))], each["found"]
        assert each["level"], each
    for executor in sorted({each["executor"] for each in found}):
        reported = [each for each in found if each["executor"] == executor]
        print("executor", executor, reported[0]["kwire"], max(each["megabytes"] for each in reported), "MB")


def look(spark: Any) -> Any:
    """Return facts of the worker of each of eight tasks, in JSON."""
    from pyspark.sql.functions import udf

    def tell(number: int) -> str:
        import json
        import os
        import resource
        import sys
        import time

        import kwire
        from kwire import native

        time.sleep(0.3)  # so that no worker takes all tasks
        return json.dumps(
            {
                "kwire": kwire.__file__,
                "found": [path for path in sys.path if os.path.isdir(os.path.join(path, "kwire"))],
                "executor": os.getppid(),
                "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10,
                "level": native.LEVEL,
            }
        )

    return spark.range(0, 8, 1, 8).select(udf(tell, "string", useArrow=False).asNondeterministic()("id"))

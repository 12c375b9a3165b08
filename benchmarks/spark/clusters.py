"""Single-broker clusters for benchmarks, with real Kafka or kwire, and reads and writes of their topics with Spark."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from benchmarks.broker.serving import Served, kwire_broker, real_kafka
from pyspark.sql import DataFrame, SparkSession
from tools import kafka

from kwire.client import Client
from kwire.messages import registry

PARTITIONS = 4
# The recommended configs that help the connector most.
TUNED_READING = {
    "kafka.max.poll.records": "10000",
    "kafka.max.partition.fetch.bytes": "16777216",
    "kafka.receive.buffer.bytes": "4194304",
}
TUNED_WRITING = {"kafka.linger.ms": "5", "kafka.batch.size": "262144"}


@dataclass(frozen=True, slots=True)
class Cluster:
    """A running broker. name: kafka or kwire."""

    name: str
    served: Served

    @property
    def log_dir(self) -> str:
        """The log directory."""
        return str(self.served.log_dir)

    def create(self, topic: str, **configs: str) -> None:
        """Create a topic without retention. configs: topic configs, with underscores instead of dots."""
        cls: Any = registry.get("CreateTopicsRequest")
        given = {"retention.ms": "-1", **{key.replace("_", "."): value for key, value in configs.items()}}
        settings = [cls.CreatableTopicConfig(name=key, value=value) for key, value in given.items()]
        topic_request = cls.CreatableTopic(
            name=topic, num_partitions=PARTITIONS, replication_factor=1, configs=settings
        )
        with Client(self.served.address) as client:
            response: Any = client.request(cls(topics=[topic_request], timeout_ms=30_000))
            (made,) = response.topics
            assert made.error_code == 0, made
            client.list_offsets({(topic, partition): -1 for partition in range(PARTITIONS)})  # waits for leaders

    def delete(self, topic: str) -> None:
        """Delete a topic."""
        cls: Any = registry.get("DeleteTopicsRequest")
        with Client(self.served.address) as client:
            client.request(cls(topic_names=[topic], timeout_ms=30_000), version=5)

    def end_offsets(self, topic: str) -> dict[int, int]:
        """Return the end offset of each partition."""
        with Client(self.served.address) as client:
            keys = [(topic, partition) for partition in range(PARTITIONS)]
            return {key[1]: each.offset for key, each in client.list_offsets(dict.fromkeys(keys, -1)).items()}

    def fill(self, topic: str, records: int, shape: str = "even") -> None:
        """Write records with Kafka's Java producer, in batches of 16 KB. shape: even (116 B each) or varied."""
        classes = kafka.compile_java(kafka.ROOT / "tools" / "java" / "FillTopic.java")
        self.create(topic)
        words = (self.served.address, topic, str(PARTITIONS), str(records), "none", shape)
        kafka.java("FillTopic", *words, classes=classes, timeout=3600)

    def read(self, spark: SparkSession, source: str, topic: str, **options: str) -> DataFrame:
        """Read a whole topic. source: kafka (the connector) or kafka-live."""
        options = {"kafka.bootstrap.servers": self.served.address, "subscribe": topic, **options}
        return spark.read.format(source).options(**options).load()

    def write(self, frame: DataFrame, sink: str, topic: str, **options: str) -> None:
        """Append to a topic. sink: kafka (the connector) or kafka-live."""
        options = {"kafka.bootstrap.servers": self.served.address, "topic": topic, **options}
        frame.write.format(sink).options(**options).mode("append").save()


@contextlib.contextmanager
def clusters() -> Iterator[tuple[Cluster, Cluster]]:
    """Run real Kafka and kwire's broker."""
    with real_kafka() as theirs, kwire_broker() as ours:
        yield Cluster("kafka", theirs), Cluster("kwire", ours)


def connector_jars() -> str | None:
    """Return the connector's jars for spark.jars; if they are missing, print why to standard error and return None."""
    try:
        kafka.jars()
        kafka.need("javac", "openjdk-17-jdk-headless")
        return ",".join(map(str, sorted(kafka.spark_connector_jars().glob("*.jar"))))
    except kafka.Unavailable as missing:
        print(f"# skipped: {missing}", file=sys.stderr)
        return None

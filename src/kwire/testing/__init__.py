"""Classes for tests of other projects, beside the fixtures of kwire.pytest_plugin.

KafkaContainer    in place of testcontainers.community.kafka.KafkaContainer, without Docker
SparkTest         topics and streaming queries of one test: the fixture kafka_spark
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kwire.testing.container import KafkaContainer
    from kwire.testing.spark import SparkTest, StreamUnderTest

__all__ = ["KafkaContainer", "SparkTest", "StreamUnderTest"]

_MODULES = {
    "KafkaContainer": "kwire.testing.container",
    "SparkTest": "kwire.testing.spark",
    "StreamUnderTest": "kwire.testing.spark",
}


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

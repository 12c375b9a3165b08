"""Kafka's wire protocol, record formats and logs, for Python and Spark.

What to import for which task:

Logs
    kwire.open("kafka://localhost:9092")                the logs of a cluster, a directory or an object store
    from kwire.log import LogDirectory                  read a log directory, a backup or an object store
    from kwire.log import LogManager                    write log directories that a Kafka broker boots on
    from kwire.maintenance.verify import verify_directory       find damage; kwire.maintenance repairs it
    from kwire.maintenance import convert, export       convert, compact, export, restore whole directories
    from kwire.log.topics import replay_groups        groups, transactions and cluster metadata of a directory

Records and messages
    from kwire import records                           batches of magic 0, 1 and 2, as objects or Arrow
    from kwire.messages import MetadataRequest          a class for each of Kafka's messages, all versions
    from kwire.messages import registry                 messages by name or API key, also of one Kafka release
    from kwire.protocol import Connection               frames, headers and versions, without I/O
    from kwire.capture import read_capture              requests and responses of a packet capture
    from kwire import schema                            message definitions: check, compare, compile

Brokers
    from kwire.broker import Broker                     a Kafka broker in this process
    def test_orders(kafka_broker): ...                  a broker for each test, as a pytest fixture
    def test_totals(kafka_spark): ...                   a streaming query of PySpark under test
    from kwire.testing import KafkaContainer            in place of testcontainers' class
    from kwire.client import Client                     a small blocking client

Spark
    import kwire.spark                                  first line of a program: finds the formats kafka-log,
                                                        kafka-live, kafka-capture and kafka-internal
    from kwire.spark import functions                   from_kafka and to_kafka, for columns of messages
    from kwire.spark import jobs                        convert, compact, verify, export with a task per partition

Errors and pages
    from kwire.errors import KwireError                 base class of every exception that kwire raises
    from kwire.pages.log_report import render_report    reports and the protocol site as HTML

The command `kwire` does most of this in a shell: `kwire --help`.
"""

import typing as _typing

if _typing.TYPE_CHECKING:
    import os as _os

    from kwire.log.reading.readable_log import LogSource as _LogSource
    from kwire.log.reading.readable_log import ReadableLog as _ReadableLog
    from kwire.messages.base import Message as _Message
    from kwire.schema import Message as _Definition

__version__ = "0.2.0"


def _message_class(definition: "_Definition") -> "type[_Message]":
    """Return the class of a definition, for `kwire.schema.compile`; imported here because schema is below messages."""
    from kwire.messages.runtime import message_class

    return message_class(definition)


def open(path_or_url: "str | _os.PathLike[str]", **settings: _typing.Any) -> "_LogSource[_ReadableLog]":
    """Open the logs at a path or URL: a mapping from (topic, partition) to logs, with one reading interface.

    path_or_url: a log directory, partition directory or segment; any URL that fsspec supports; `tiered+URL`;
    `kafka://host:port[,host:port][/topic[-partition]]` for a running cluster; a packet capture (`.pcap`, `.pcapng`),
    whose records are written to a temporary directory first.
    settings: of the URL's driver, of open_tiered, or Kafka's client configs with underscores for dots; a local path has
    none.
    Returns a LogDirectory, or ClusterLogs for a cluster. Raises LogError, OptionError, BrokerError, ConnectionFailed,
    and Malformed for a damaged capture.
    """
    import os

    text = os.fspath(path_or_url)
    if text[:8].lower() == "kafka://":
        from kwire.client.cluster_logs import ClusterLogs

        return _typing.cast("_LogSource[_ReadableLog]", ClusterLogs(text, **settings))
    if settings and (text[:7].lower() == "file://" or ("://" not in text and not text.startswith("tiered+"))):
        from kwire.errors import OptionError

        raise OptionError(f"{next(iter(settings))}: a setting of a URL or cluster; {text} is a local path")
    from kwire.log.files.file_names import is_capture

    if is_capture(text) and not os.path.isdir(text):
        import time

        from kwire.capture.logs import CapturedLogs

        captured = CapturedLogs(text, now_ms=time.time_ns() // 1_000_000, **settings)
        return _typing.cast("_LogSource[_ReadableLog]", captured)
    from kwire.log import LogDirectory, open_tiered

    opened = open_tiered(text, **settings) if text.startswith("tiered+") else LogDirectory(text, **settings)
    return _typing.cast("_LogSource[_ReadableLog]", opened)

"""Kafka's wire protocol, record formats and logs, for Python and Spark.

Data
    kwire.log               LogDirectory reads log directories, LogManager writes them
    kwire.maintenance       repair, compact, convert, export and restore whole directories
    kwire.records           record batches of magic 0, 1 and 2, as objects or Arrow
    kwire.internal_topics   consumer groups, transactions and cluster metadata, from Kafka's internal topics
    kwire.storage           local directories, object stores and tiered storage

Protocol
    kwire.messages          a class for each of Kafka's messages; kwire.messages.registry finds them
    kwire.protocol          frames, headers and version negotiation without I/O
    kwire.schema            message definitions: check, compare, compile
    kwire.capture           requests and responses from packet captures

Brokers
    kwire.broker            Broker: a Kafka broker in this process; the pytest fixture kafka_broker
    kwire.client            Client: a small blocking client

Spark
    kwire.spark             the formats kafka-log, kafka-live, kafka-capture and kafka-internal
    kwire.spark.functions   from_kafka, to_kafka
    kwire.spark.jobs        convert, compact, verify, export and restore with one task per partition

kwire.errors lists all exceptions. The command `kwire` offers the same in a shell: `kwire --help`.
"""

__version__ = "0.1.0"

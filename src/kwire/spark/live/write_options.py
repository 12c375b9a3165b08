"""The options of writing to `kafka-live`: Spark's sink's, and the transactional mode. Standard library only.

docs/live.md has the same table. Source: KafkaSourceProvider.kafkaParamsForProducer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kwire.client import ClientSettings
from kwire.errors import OptionError
from kwire.log.file_names import check_topic
from kwire.spark.live.options import NAMES as READING_NAMES
from kwire.spark.options.given import user_options
from kwire.spark.options.values import parse_flag, parse_positive, refuse_unknown

__all__ = ["LiveWriteOptions", "parse_write_options"]

PAGE = "docs/live.md"
NAMES = ("topic", "transactional", "transactionalIdPrefix", "oncePerBatch")
REFUSED = {
    "kafka.key.serializer": "keys are written as they are; use DataFrame operations to serialize them",
    "kafka.value.serializer": "values are written as they are; use DataFrame operations to serialize them",
    "path": "this sink talks to brokers; to write a log directory, use kafka-log",
}
DEFAULT_BATCH_BYTES = 256 << 10  # of a Kafka batch before compression; Java's 16 KiB is for records that trickle in
DELIVERY_TIMEOUT_MS = "120000"  # Java's delivery.timeout.ms
TRANSACTION_TIMEOUT_MS = "900000"  # what brokers allow at most by default: the slowest task has to end within


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveWriteOptions:
    """Everything a write asked for. kafka: settings of the client, which may hold secrets and are in no repr.

    topic: of all rows, None where the column says. transactional_prefix: None without transactions.
    batch_bytes: of a Kafka batch before compression. once_per_batch: whether a batch write in foreachBatch records the
    micro-batch that it belongs to, as a stream does.
    """

    kafka: Mapping[str, str] = field(repr=False)
    topic: str | None
    transactional_prefix: str | None
    batch_bytes: int
    once_per_batch: bool = False


def parse_write_options(options: Mapping[str, str]) -> LiveWriteOptions:
    """Check the options of one write; raises OptionError naming the option and what would be right."""
    given = user_options(options)
    for name, reason in REFUSED.items():
        if name.lower() in given:
            raise OptionError(f"Option '{name}' is not supported: {reason}")
    for name in READING_NAMES:
        if name.lower() in given:
            raise OptionError(f"Option '{name}' belongs to reading; {PAGE} lists the options of writing")
    refuse_unknown(
        {key: value for key, value in given.items() if not key.startswith("kafka.")}, NAMES, "kafka-live", PAGE
    )
    if not given.get("kafka.bootstrap.servers", "").strip():
        raise OptionError(
            "Option 'kafka.bootstrap.servers' must be specified for configuring Kafka producer: host:port, ..."
        )
    topic = given["topic"].strip() if "topic" in given else None
    if topic is not None:
        check_topic(topic)
    batch_bytes = parse_positive(given, "kafka.batch.size") or DEFAULT_BATCH_BYTES
    prefix = parse_prefix(given)
    once_per_batch = parse_flag(given, "oncePerBatch", False)
    if once_per_batch and prefix is None:
        raise OptionError("Option 'oncePerBatch' needs transactionalIdPrefix")
    settings = {key.removeprefix("kafka."): value for key, value in given.items() if key.startswith("kafka.")}
    settings.pop("transactional.id", None)
    settings.setdefault("default.api.timeout.ms", settings.get("delivery.timeout.ms", DELIVERY_TIMEOUT_MS))
    if prefix is not None:
        settings.setdefault("transaction.timeout.ms", TRANSACTION_TIMEOUT_MS)
    elif settings.get("acks") in ("0", "1"):
        settings.setdefault("enable.idempotence", "false")  # as Java's producer, where nobody asked for it
    parsed = ClientSettings.parse(settings)
    if parsed.acks != -1 and (parsed.enable_idempotence or prefix is not None):
        what = "transactions need" if prefix is not None else "idempotence needs"
        raise OptionError(f"Option 'kafka.acks': {what} acks all; leave it out")
    if prefix is not None and not parsed.enable_idempotence:
        raise OptionError("Option 'kafka.enable.idempotence': transactions cannot do without; leave it out")
    return LiveWriteOptions(
        kafka=settings,
        topic=topic,
        transactional_prefix=prefix,
        batch_bytes=min(batch_bytes, parsed.max_request_size),
        once_per_batch=once_per_batch,
    )


def parse_prefix(given: Mapping[str, str]) -> str | None:
    """The prefix of transactional ids, from either option; None where transactions are not asked for."""
    names = ("transactionalIdPrefix", "kafka.transactional.id")
    values = {given[name.lower()].strip() for name in names if name.lower() in given}
    wanted = parse_flag(given, "transactional", bool(values))
    if values and not wanted:
        raise OptionError("Option 'transactional' is false, and there is a transactional id; leave out one of them")
    if not wanted:
        return None
    if len(values) > 1:
        raise OptionError("Options 'transactionalIdPrefix' and 'kafka.transactional.id' differ; give one of them")
    prefix = next(iter(values), "")
    if not prefix:
        raise OptionError(
            "Option 'transactional' needs transactionalIdPrefix: a name that no other query uses, such as orders-copy"
        )
    return prefix

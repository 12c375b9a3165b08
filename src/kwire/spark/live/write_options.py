"""The options of writing `kafka-live`: those of Spark's sink, and transactions; docs/live.md has them as a table.

Standard library only. Source: KafkaSourceProvider.kafkaParamsForProducer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kwire.client import ClientSettings
from kwire.errors import OptionError
from kwire.log.file_names import check_topic
from kwire.spark.live.options import OPTIONS, is_client_setting
from kwire.spark.options.given import user_options
from kwire.spark.options.option import Option, check_names
from kwire.spark.options.values import flag, positive, text

__all__ = ["WRITE_OPTIONS", "LiveWriteOptions", "parse_write_options"]

PAGE = "docs/live.md"
DEFAULT_BATCH_BYTES = 256 << 10  # before compression; Java's default of 16 KiB is for records that trickle in
DELIVERY_TIMEOUT_MS = "120000"  # Java's default
TRANSACTION_TIMEOUT_MS = "900000"  # brokers' default maximum; the slowest task must end within it

BOOTSTRAP_SERVERS = Option[str | None](
    name="kafka.bootstrap.servers",
    parse=text,
    default=None,
    value="comma-separated list of `host:port`",
    shown_default="required",
    meaning="The brokers to connect to first.",
)
TOPIC = Option[str | None](
    name="topic",
    parse=text,
    default=None,
    value="string",
    shown_default="none",
    meaning="The topic of all rows. Overrides the column `topic`.",
)
TRANSACTIONAL = Option[bool | None](
    name="transactional",
    parse=flag,
    default=None,
    value="boolean",
    shown_default="true with `transactionalIdPrefix`, else false",
    meaning="Whether to write in transactions. See [Delivery guarantees](#delivery-guarantees).",
)
TRANSACTIONAL_ID_PREFIX = Option[str | None](
    name="transactionalIdPrefix",
    parse=text,
    default=None,
    value="string",
    shown_default="none",
    meaning="Prefix of the transactional ids; required for transactions, and used by no other query. "
    "`kafka.transactional.id` is a synonym.",
)
ONCE_PER_BATCH = Option[bool](
    name="oncePerBatch",
    parse=flag,
    default=False,
    value="boolean",
    shown_default="false",
    meaning="For a batch write in `foreachBatch`: write a micro-batch [once](#output-mode-update), even if Spark "
    "runs it again.",
)
BATCH_SIZE = Option[int](
    name="kafka.batch.size",
    parse=positive,
    default=DEFAULT_BATCH_BYTES,
    value="int",
    shown_default=str(DEFAULT_BATCH_BYTES),
    meaning="Size of a batch in bytes before compression; at most the topic's `max.message.bytes`.",
)


def _client_setting(name: str, value: str, shown_default: str, meaning: str) -> Option[str | None]:
    return Option(name=name, parse=text, default=None, value=value, shown_default=shown_default, meaning=meaning)


WRITE_OPTIONS: tuple[Option[object], ...] = (
    BOOTSTRAP_SERVERS,
    TOPIC,
    TRANSACTIONAL,
    TRANSACTIONAL_ID_PREFIX,
    ONCE_PER_BATCH,
    BATCH_SIZE,
    _client_setting("kafka.acks", "`all`, `1` or `0`", "`all`", "The acknowledgments that a write waits for."),
    _client_setting(
        "kafka.enable.idempotence",
        "boolean",
        "true with acks `all`",
        "Whether brokers drop duplicates of a request that is retried.",
    ),
    _client_setting(
        "kafka.compression.type",
        "`none`, `gzip`, `snappy`, `lz4` or `zstd`",
        "`none`",
        "The compression codec of batches.",
    ),
    _client_setting("kafka.compression.gzip.level", "1 to 9", "1", "The compression level of gzip."),
    _client_setting("kafka.compression.lz4.level", "1 to 17", "9", "The compression level of lz4."),
    _client_setting("kafka.compression.zstd.level", "-131072 to 22", "3", "The compression level of zstd."),
    _client_setting(
        "kafka.delivery.timeout.ms",
        "int",
        DELIVERY_TIMEOUT_MS,
        "The timeout in milliseconds of a write, retries included.",
    ),
    _client_setting(
        "kafka.transaction.timeout.ms",
        "int",
        TRANSACTION_TIMEOUT_MS,
        "The timeout in milliseconds of a transaction, from a task's first row to the commit; at most the brokers' "
        "`transaction.max.timeout.ms`.",
    ),
    _client_setting(
        "kafka.*",
        "string",
        "none",
        "Configurations of the client. See [Kafka configurations](#kafka-configurations).",
    ),
)
_FOR_READING = "it applies to reading"
UNSUPPORTED = {
    **{option.name: _FOR_READING for option in OPTIONS if not option.name.startswith("kafka.")},
    "kafka.key.serializer": "keys are written as they are; use DataFrame operations to serialize them",
    "kafka.value.serializer": "values are written as they are; use DataFrame operations to serialize them",
    "path": "this sink writes to brokers; use kafka-log to write a log directory",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveWriteOptions:
    """The options of a write. kafka: settings of the client; may contain secrets, so not in repr.

    topic: of all rows; None to use the column. transactional_prefix: None without transactions. batch_bytes: size of a
    batch before compression. once_per_batch: whether a batch write in foreachBatch records its micro-batch.
    """

    kafka: Mapping[str, str] = field(repr=False)
    topic: str | None
    transactional_prefix: str | None
    batch_bytes: int
    once_per_batch: bool = False


def parse_write_options(options: Mapping[str, str]) -> LiveWriteOptions:
    """Parse the options of one write. Raises OptionError."""
    given = user_options(options)
    check_names(given, WRITE_OPTIONS, UNSUPPORTED, source="kafka-live", page=PAGE, passed_on=is_client_setting)
    if not (BOOTSTRAP_SERVERS.of(given) or "").strip():
        raise OptionError(
            "Option 'kafka.bootstrap.servers' must be specified for configuring Kafka producer: host:port, ..."
        )
    topic = TOPIC.of(given)
    if topic is not None:
        topic = topic.strip()
        check_topic(topic)
    prefix, once_per_batch = _parse_prefix(given), ONCE_PER_BATCH.of(given)
    if once_per_batch and prefix is None:
        raise OptionError("Option 'oncePerBatch': requires transactionalIdPrefix")
    settings = _client_settings(given, transactional=prefix is not None)
    parsed = ClientSettings.parse(settings)
    if parsed.acks != -1 and (parsed.enable_idempotence or prefix is not None):
        what = "transactions require" if prefix is not None else "idempotence requires"
        raise OptionError(f"Option 'kafka.acks': {what} acks all; remove the option")
    if prefix is not None and not parsed.enable_idempotence:
        raise OptionError("Option 'kafka.enable.idempotence': transactions require idempotence; remove the option")
    return LiveWriteOptions(
        kafka=settings,
        topic=topic,
        transactional_prefix=prefix,
        batch_bytes=min(BATCH_SIZE.of(given), parsed.max_request_size),
        once_per_batch=once_per_batch,
    )


def _client_settings(given: Mapping[str, str], *, transactional: bool) -> dict[str, str]:
    settings = {key.removeprefix("kafka."): value for key, value in given.items() if is_client_setting(key)}
    settings.pop("transactional.id", None)
    settings.setdefault("default.api.timeout.ms", settings.get("delivery.timeout.ms", DELIVERY_TIMEOUT_MS))
    if transactional:
        settings.setdefault("transaction.timeout.ms", TRANSACTION_TIMEOUT_MS)
    elif settings.get("acks") in ("0", "1"):
        settings.setdefault("enable.idempotence", "false")  # as Java's producer does unless it is set
    return settings


def _parse_prefix(given: Mapping[str, str]) -> str | None:
    """The prefix of transactional ids, from either option; None without transactions."""
    names = (TRANSACTIONAL_ID_PREFIX.name, "kafka.transactional.id")
    values = {given[name.lower()].strip() for name in names if name.lower() in given}
    transactional = TRANSACTIONAL.of(given)
    if values and transactional is False:
        raise OptionError("Option 'transactional': is false, and a transactional id is set; remove one of them")
    if not values and not transactional:
        return None
    if len(values) > 1:
        raise OptionError("Options 'transactionalIdPrefix' and 'kafka.transactional.id' differ; remove one of them")
    prefix = next(iter(values), "")
    if not prefix:
        raise OptionError(
            "Option 'transactional': requires transactionalIdPrefix, a name of this query alone, such as orders-copy"
        )
    return prefix

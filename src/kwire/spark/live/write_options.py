"""The options of writing `kafka-live`: as for Spark's sink, and transactions; docs/live.md has them as a table.

Standard library only. Source: KafkaSourceProvider.kafkaParamsForProducer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kwire.client import ClientSettings
from kwire.errors import OptionError
from kwire.log.files.file_names import check_topic
from kwire.spark.live.options import (
    BOOTSTRAP_SERVERS,
    CLIENT_SETTINGS,
    OPTIONS,
    client_settings,
    is_client_setting,
    options_of_user,
)
from kwire.spark.options.option import Option, check_names, flag, flag_option, positive, text_option
from kwire.spark.sink_columns import TOPIC

__all__ = ["WRITE_OPTIONS", "LiveWriteOptions", "parse_write_options"]

PAGE = "docs/live.md"
DEFAULT_BATCH_BYTES = 256 << 10  # before compression; Java's default of 16 KiB is for records that trickle in
DELIVERY_TIMEOUT_MS = "120000"  # Java's default
TRANSACTION_TIMEOUT_MS = "900000"  # brokers' default maximum; the slowest task must end within it

TRANSACTIONAL = Option[bool | None](
    name="transactional",
    parse=flag,
    default=None,
    value="boolean",
    shown_default="true with `transactionalIdPrefix`, else false",
    meaning="Whether to write in transactions. See [Delivery guarantees](#delivery-guarantees).",
)
TRANSACTIONAL_ID_PREFIX = text_option(
    name="transactionalIdPrefix",
    value="string",
    meaning="Prefix of the transactional ids; required for transactions, and used by no other query. "
    "`kafka.transactional.id` is a synonym.",
)
ONCE_PER_BATCH = flag_option(
    name="oncePerBatch",
    default=False,
    meaning="For a batch write in `foreachBatch`: write a micro-batch [once](#output-mode-update), even if Spark "
    "runs it again.",
)
BATCH_SIZE = Option[int](
    name="kafka.batch.size",
    parse=positive,
    default=DEFAULT_BATCH_BYTES,
    value="int",
    meaning="Size of a batch in bytes before compression; at most the topic's `max.message.bytes`.",
)


WRITE_OPTIONS: tuple[Option[object], ...] = (
    BOOTSTRAP_SERVERS,
    TOPIC,
    TRANSACTIONAL,
    TRANSACTIONAL_ID_PREFIX,
    ONCE_PER_BATCH,
    BATCH_SIZE,
    text_option(
        name="kafka.acks",
        value="`all`, `1` or `0`",
        shown_default="`all`",
        meaning="The acknowledgments that a write waits for.",
    ),
    text_option(
        name="kafka.enable.idempotence",
        value="boolean",
        shown_default="true with acks `all`",
        meaning="Whether brokers drop duplicates of a request that is retried.",
    ),
    text_option(
        name="kafka.compression.type",
        value="`none`, `gzip`, `snappy`, `lz4` or `zstd`",
        shown_default="`none`",
        meaning="The compression codec of batches.",
    ),
    *(
        text_option(
            name=f"kafka.compression.{codec}.level",
            value=levels,
            shown_default=level,
            meaning=f"The compression level of {codec}.",
        )
        for codec, levels, level in (("gzip", "1 to 9", "1"), ("lz4", "1 to 17", "9"), ("zstd", "-131072 to 22", "3"))
    ),
    text_option(
        name="kafka.delivery.timeout.ms",
        value="int",
        shown_default=DELIVERY_TIMEOUT_MS,
        meaning="The timeout in milliseconds of a write, retries included.",
    ),
    text_option(
        name="kafka.transaction.timeout.ms",
        value="int",
        shown_default=TRANSACTION_TIMEOUT_MS,
        meaning="The timeout in milliseconds of a transaction, from a task's first row to the commit; at most the "
        "brokers' `transaction.max.timeout.ms`.",
    ),
    CLIENT_SETTINGS,
)
_FOR_READING = "it applies to reading"
UNSUPPORTED = {
    **{option.name: _FOR_READING for option in OPTIONS if not option.name.startswith("kafka.")},
    "kafka.key.serializer": "keys are written unchanged; use DataFrame operations to serialize them",
    "kafka.value.serializer": "values are written unchanged; use DataFrame operations to serialize them",
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
    given = options_of_user(options)
    check_names(given, WRITE_OPTIONS, UNSUPPORTED, source="kafka-live", page=PAGE, passed_on=is_client_setting)
    settings = client_settings(given, "producer")
    topic = TOPIC.of(given)
    if topic is not None:
        topic = topic.strip()
        check_topic(topic)
    prefix, once_per_batch = _parse_prefix(given), ONCE_PER_BATCH.of(given)
    if once_per_batch and prefix is None:
        raise OptionError("Option 'oncePerBatch': requires transactionalIdPrefix")
    settings.pop("transactional.id", None)
    if "default.api.timeout.ms" not in settings:
        settings["default.api.timeout.ms"] = settings.pop("delivery.timeout.ms", DELIVERY_TIMEOUT_MS)
    settings.pop("batch.size", None)  # of BATCH_SIZE
    if prefix is not None:
        settings.setdefault("transaction.timeout.ms", TRANSACTION_TIMEOUT_MS)
    elif settings.get("acks") in ("0", "1"):
        settings.setdefault("enable.idempotence", "false")  # as Java's producer does unless it is set
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


def _parse_prefix(given: Mapping[str, str]) -> str | None:
    """Return the prefix of transactional ids, from either option; None without transactions."""
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

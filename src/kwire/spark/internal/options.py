"""The options of `kafka-internal`; docs/internal.md has them as a table. Standard library only."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from kwire.errors import OptionError, did_you_mean
from kwire.internal_topics.names import GROUPS_TOPIC, METADATA_TOPIC, SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC
from kwire.log.reading.paths import StorageOptions
from kwire.spark.internal.columns import COLUMNS, HISTORY_COLUMNS, TOPICS
from kwire.spark.offsets import FAIL_ON_DATA_LOSS
from kwire.spark.options.option import COLUMNS as COLUMNS_OPTION
from kwire.spark.options.option import (
    PATH,
    PATHS,
    STORAGE,
    Option,
    check_names,
    choice,
    flag_option,
    parse_paths,
    parse_storage,
    text_option,
    user_options,
)
from kwire.spark.schema import select_columns

__all__ = ["OPTIONS", "InternalOptions", "column_types", "parse_options"]

PAGE = "docs/internal.md"

Mode = Literal["current", "history"]

# The kind of rows of a topic. The metadata log has too many kinds for a default.
DEFAULT_KINDS = {
    GROUPS_TOPIC: "groups",
    TRANSACTIONS_TOPIC: "transactions",
    SHARE_STATE_TOPIC: "share",
    METADATA_TOPIC: None,
}


def _number(name: str, value: str) -> int:
    if not re.fullmatch(r"[0-9]{1,19}", value.strip()):
        what = "an offset" if name == AT_OFFSET.name else "milliseconds since 1970"
        raise OptionError(f"Option '{name}': expected {what}, got '{value}'")
    return int(value)


KIND = text_option(
    name="kind",
    value=", ".join(f"`{kind}`" for kind in COLUMNS),
    shown_default="by `topic`",
    meaning="The rows to read: one for each object of that kind.",
)
TOPIC = text_option(
    name="topic",
    value=", ".join(f"`{topic}`" for topic in DEFAULT_KINDS),
    shown_default="by `kind`",
    meaning="The internal topic; an alternative to `kind`, which it implies except for `__cluster_metadata`.",
)
MODE = Option[Mode](
    name="mode",
    parse=choice("current", "history"),
    default="current",
    value="`current` or `history`",
    meaning="Whether to read the state that the records add up to, or the records.",
)
AT_OFFSET = Option[int | None](
    name="atOffset",
    parse=_number,
    default=None,
    value="long",
    shown_default="end of the log",
    meaning="Read the records below this offset. Requires a single partition.",
)
AT_TIME = Option[int | None](
    name="atTime",
    parse=_number,
    default=None,
    value="timestamp in milliseconds",
    shown_default="end of the log",
    meaning="Read the records before the first one with a later timestamp.",
)
REDACT = flag_option(name="redact", default=True, meaning="Whether to hide secrets.")
OPTIONS: tuple[Option[object], ...] = (
    PATH,
    PATHS,
    KIND,
    TOPIC,
    MODE,
    AT_OFFSET,
    AT_TIME,
    COLUMNS_OPTION,
    REDACT,
    replace(
        FAIL_ON_DATA_LOSS,
        meaning="Whether to fail a query of the current state at a record that cannot be read. With false the record "
        "is skipped and a warning is logged.",
    ),
    STORAGE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class InternalOptions:
    """The options of a query. kind: None for the history of a topic without a default kind."""

    paths: tuple[str, ...]
    storage: StorageOptions = field(default_factory=dict, repr=False)
    topic: str
    kind: str | None
    mode: Mode
    at_offset: int | None = None
    at_time: int | None = None
    columns: tuple[str, ...] | None = None
    redact: bool = True
    fail_on_data_loss: bool = True

    @property
    def types(self) -> dict[str, str]:
        """All available columns, with types."""
        if self.mode == "history":
            return HISTORY_COLUMNS
        assert self.kind is not None
        return COLUMNS[self.kind]


def parse_options(options: Mapping[str, str]) -> InternalOptions:
    """Parse the options of one query. Raises OptionError."""
    given = user_options(options)
    check_names(given, OPTIONS, {}, source="kafka-internal", page=PAGE)
    mode = MODE.of(given)
    topic, kind = _topic_and_kind(given, mode)
    at_offset, at_time = AT_OFFSET.of(given), AT_TIME.of(given)
    if at_offset is not None and at_time is not None:
        raise OptionError("Only one of the following options can be specified: atOffset, atTime")
    return InternalOptions(
        paths=parse_paths(given),
        storage=parse_storage(given),
        topic=topic,
        kind=kind,
        mode=mode,
        at_offset=at_offset,
        at_time=at_time,
        columns=COLUMNS_OPTION.of(given),
        redact=REDACT.of(given),
        fail_on_data_loss=FAIL_ON_DATA_LOSS.of(given),
    )


def _topic_and_kind(given: Mapping[str, str], mode: Mode) -> tuple[str, str | None]:
    kind, topic = KIND.of(given), TOPIC.of(given)
    if kind is not None:
        kind = kind.strip().lower()
        if kind not in COLUMNS:
            raise OptionError(
                f"Option 'kind': expected one of {', '.join(COLUMNS)}, got '{kind}'{did_you_mean(kind, COLUMNS)}"
            )
        if topic is not None and topic != TOPICS[kind]:
            raise OptionError(f"Option 'kind': {kind} are in {TOPICS[kind]}, not in '{topic}'; remove option 'topic'")
        return TOPICS[kind], kind
    if topic is None:
        raise OptionError(f"Option 'kind' must be specified: one of {', '.join(COLUMNS)}; or 'topic'")
    if topic not in DEFAULT_KINDS:
        hint = did_you_mean(topic, DEFAULT_KINDS)
        raise OptionError(f"Option 'topic': expected one of {', '.join(DEFAULT_KINDS)}, got '{topic}'{hint}")
    kind = DEFAULT_KINDS[topic]
    if kind is None and mode == "current":
        kinds = ", ".join(name for name, of in TOPICS.items() if of == topic)
        raise OptionError(f"Option 'kind' must be specified for {topic}: one of {kinds}")
    return topic, kind


def column_types(options: InternalOptions) -> dict[str, str]:
    """Return the columns of a query, with types. Raises OptionError for unknown and repeated columns."""
    return options.types if options.columns is None else select_columns(options.types, options.columns)

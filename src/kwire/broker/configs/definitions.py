"""Kafka's config definitions: which configs exist, of which type, with which default and limits.

config_facts.tsv lists the configs of Kafka 4.4.0, config_documentation.tsv.gz what Kafka says about them;
tools/configs.py reads both from Kafka's classes. Three topic configs that Kafka 4.0 removed are added, because magic 0
and 1 need them. Values are parsed and validated as in Kafka, with the same error messages.

Source: org.apache.kafka.common.config.ConfigDef, ConfigDef.Validator 4.4.0.
"""

from __future__ import annotations

import functools
import gzip
import re
from collections.abc import Mapping
from enum import IntEnum
from pathlib import Path
from typing import TypeAlias

import msgspec

from kwire.errors import OptionError

__all__ = ["ConfigDefinition", "ConfigType", "ConfigValue", "Resource", "definitions", "documentation"]

ConfigValue: TypeAlias = bool | int | float | str | list[str]

FACTS = Path(__file__).with_name("config_facts.tsv")
DOCUMENTATION = Path(__file__).with_name("config_documentation.tsv.gz")
NULL = "\\N"
DROPPED = (
    "topic\tmessage.downconversion.enable\tBOOLEAN\ttrue\t\t\t",
    "topic\tmessage.format.version\tSTRING\t3.0-IV1\tversion\t\t",
    "topic\tmessage.timestamp.difference.max.ms\tLONG\t9223372036854775807\t[0,...]\t\t",
)
"""Topic configs of Kafka 3.9 that 4.0 removed."""
INTEGER = re.compile(r"[+-]?\d+", re.ASCII)
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
RANGE = re.compile(r"\[(-?[\d.]+),\.\.\.(?:,(-?[\d.]+))?\]")
OR_ONE_MORE = re.compile(r"\[(-?\d+),\.\.\.,(-?\d+)\] or (-?\d+)")
VERSION = re.compile(r"\d+\.\d+(\.\d+){0,2}(-IV\d+)?", re.ASCII)
REPLICA = re.compile(r"[0-9]+:[0-9]+", re.ASCII)


class ConfigType(IntEnum):
    """Type of a value. Source: DescribeConfigsResponse.ConfigType."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


BITS = {ConfigType.INT: 32, ConfigType.SHORT: 16, ConfigType.LONG: 64}


class Resource:
    """Kinds of resources that have configs."""

    BROKER, TOPIC, CLIENT_METRICS, GROUP = "broker", "topic", "client-metrics", "group"


class ConfigDefinition(msgspec.Struct, frozen=True, kw_only=True):
    """Definition of a config. default: None for null. limits: valid values, in Kafka's notation.

    scope: how a broker config can be changed dynamically: read-only, cluster-wide (one broker or all), per-broker.
    """

    name: str
    kind: ConfigType
    default: str | None
    limits: str
    scope: str
    is_internal: bool

    @property
    def is_number(self) -> bool:
        """Whether values are numbers."""
        return self.kind in BITS or self.kind == ConfigType.DOUBLE

    def parse(self, text: str) -> ConfigValue:
        """Parse and validate a value. Raises OptionError with Kafka's message."""
        value = self._typed(text)
        problem = self._problem(value)
        if problem:
            raise OptionError(f"Invalid value {render_java(value)} for configuration {self.name}: {problem}")
        return value

    def _typed(self, text: str) -> ConfigValue:
        trimmed, kind = text.strip(), self.kind
        if kind == ConfigType.BOOLEAN:
            if trimmed.lower() not in ("true", "false"):
                raise self._invalid(text, "Expected value to be either true or false")
            return trimmed.lower() == "true"
        if kind in BITS:
            largest = 1 << (BITS[kind] - 1)
            if len(trimmed) > 20 or not INTEGER.fullmatch(trimmed) or not -largest <= int(trimmed) < largest:
                raise self._invalid(text, f"Not a number of type {kind.name}")
            return int(trimmed)
        if kind == ConfigType.DOUBLE:
            if not NUMBER.fullmatch(trimmed):
                raise self._invalid(text, "Not a number of type DOUBLE")
            return float(trimmed)
        if kind == ConfigType.LIST:
            items = re.split(r"\s*,\s*", trimmed) if trimmed else []
            if self.limits.startswith("[") and "" in items and not self._is_throttle:
                raise OptionError(f"Configuration '{self.name}' values must not be empty.")
            return items
        if kind == ConfigType.CLASS and trimmed != self.default:
            raise self._invalid(text, f"Class {text} could not be found.")
        return trimmed

    @property
    def _is_throttle(self) -> bool:
        return self.limits.startswith("[partitionId]")

    def _invalid(self, text: str, what: str) -> OptionError:
        return OptionError(f"Invalid value {text} for configuration {self.name}: {what}")

    def _problem(self, value: ConfigValue) -> str | None:
        """Return the message for a value outside the limits, None for a valid one."""
        limits = self.limits
        if isinstance(value, list):
            return self._problem_of_list(value)
        if isinstance(value, int | float):
            if match := RANGE.fullmatch(limits):
                return out_of_range(value, match[1], match[2])
            if match := OR_ONE_MORE.fullmatch(limits):
                low, high, other = map(int, match.groups())
                within = low <= value <= high or value == other
                return None if within else f"Value must be between {low} and {high} or equal to {other}"
            return None
        if limits == "version":
            return None if VERSION.fullmatch(value) else f"Version {value} is not a valid version"
        if limits.startswith("["):
            allowed = limits[1:-1].split(", ")
            return None if value in allowed else f"String must be one of: {', '.join(allowed)}"
        return None

    def _problem_of_list(self, items: list[str]) -> str | None:
        if self._is_throttle:
            parts = items[:-1] if items and not items[-1] else items  # Java's split drops the empty end
            if parts == ["*"] or all(REPLICA.fullmatch(part) for part in parts):
                return None
            return f"{self.name} must be the literal '*' or a list of replicas in the following format: {self.limits}"
        if self.limits.startswith("["):
            allowed = self.limits[1:-1].split(", ")
            for item in items:
                if item not in allowed:
                    raise self._invalid(item, f"String must be one of: {', '.join(allowed)}")
        return None


def out_of_range(value: float, low: str, high: str | None) -> str | None:
    """Return the message for a value outside [low, high], None for a valid one."""
    if value < float(low) if "." in low else value < int(low):
        return f"Value must be at least {low}"
    if high is not None and (value > float(high) if "." in high else value > int(high)):
        return f"Value must be no more than {high}"
    return None


def render_java(value: ConfigValue) -> str:
    """Format a value as Java does."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"[{', '.join(value)}]" if isinstance(value, list) else str(value)


def read_line(line: str) -> tuple[str, ConfigDefinition]:
    """Parse a line of config_facts.tsv into resource kind and definition."""
    resource, name, kind, default, limits, scope, internal = line.split("\t")
    return resource, ConfigDefinition(
        name=name,
        kind=ConfigType[kind],
        default=None if default == NULL else default,
        limits=limits,
        scope=scope,
        is_internal=bool(internal),
    )


@functools.cache
def read_all() -> Mapping[str, Mapping[str, ConfigDefinition]]:
    """Read all definitions, by resource kind and name."""
    by_resource: dict[str, dict[str, ConfigDefinition]] = {}
    for line in (*FACTS.read_text("utf-8").splitlines(), *DROPPED):
        resource, definition = read_line(line)
        by_resource.setdefault(resource, {})[definition.name] = definition
    return by_resource


def definitions(resource: str) -> Mapping[str, ConfigDefinition]:
    """Return the configs of a resource kind (see Resource), by name."""
    return read_all()[resource]


@functools.cache
def read_documentation() -> Mapping[tuple[str, str], str]:
    """Read what Kafka says about its configs, by resource kind and name."""
    texts: dict[tuple[str, str], str] = {}
    for line in gzip.decompress(DOCUMENTATION.read_bytes()).decode().splitlines():
        about, _, text = line.partition("\t")
        text = re.sub(r"\\(.)", lambda match: "\n" if match[1] == "n" else match[1], text)
        words = about.split(" ")
        texts.update(dict.fromkeys(zip(words[::2], words[1::2], strict=True), text))
    return texts


def documentation(resource: str, name: str) -> str | None:
    """Return what Kafka says about a config of a resource kind (see Resource); None for those it does not have."""
    return read_documentation().get((resource, name))

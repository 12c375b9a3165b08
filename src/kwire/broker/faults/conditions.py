"""Conditions of faults: which requests, and which of them in turn.

A request meets the conditions if all of them hold. Conditions on a topic, partition, group or transactional id hold if
the request names one that fits, and all of them for the same element: topic="orders", partition=0 is partition 0 of
orders. So do conditions on the resource of configs, the entity of a quota, or a user. Strings are patterns, such as
"app-*".
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Protocol, TypedDict, TypeGuard
from uuid import UUID

import msgspec

from kwire.broker.faults.names import METADATA_APIS, api_name, parse_api
from kwire.errors import Malformed, OptionError, did_you_mean

if TYPE_CHECKING:
    from kwire.broker.faults.entities import Entity, TopicNames
    from kwire.messages.base import Message

__all__ = [
    "Apis",
    "Conditions",
    "Seen",
    "Served",
    "Trigger",
    "When",
    "parse_apis",
    "parse_conditions",
    "parse_nodes",
    "parse_trigger",
]

Apis = str | Collection[str]
"""An API's name, several names, or "*" for every API."""
PATTERNS = "*?["
KAFKA_ID_LENGTH = 22
"""Of a UUID as Kafka prints it."""
RESOURCE_TYPES = {"topic": 2, "broker": 4, "broker-logger": 8, "client-metrics": 16, "group": 32}
"""Source: org.apache.kafka.common.config.ConfigResource.Type; named as kafka-configs.sh does, in the singular."""
QUOTA_TYPES = ("user", "client-id", "ip")
LEGAL_TOPIC = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


class Range(Protocol):
    """The lowest and the highest version of an API that is served."""

    @property
    def lowest(self) -> int:
        """The lowest version."""

    @property
    def highest(self) -> int:
        """The highest version."""


Served = Mapping[int, Range]
"""The versions that a broker serves, by API key."""


class When(TypedDict, total=False):
    """The conditions of a fault, as keyword arguments. Which requests:

    version: a version, or the lowest and the highest. node: the id of a node of a cluster, or several.
    client_id, topic, group, transactional_id: names or patterns.
    topic_id: a topic's id, also one that does not exist. partition: a number, or several. resource: the name of a
    resource of configs; resource_type: topic, broker, group, client-metrics or broker-logger. quota: the entity of a
    quota, such as {"user": "alice"}; None is the default. user: of SCRAM. where: values by field name,
    such as {"acks": 0} or {"topics.name": "orders"}. when: a function of the decoded request, called on the broker's
    thread.

    Which of them in turn: skip: not the first ones. on_call: only the n-th. every: every n-th. probability: of each,
    from a generator with this seed, 0 by default. times: how many, None for no limit. It is 1 by default, None with
    `every` and `probability`.
    """

    version: int | Collection[int]
    node: int | Collection[int]
    client_id: str
    topic: str
    topic_id: UUID | str
    partition: int | Collection[int]
    group: str
    transactional_id: str
    resource: str
    resource_type: str
    quota: Mapping[str, str | None]
    user: str
    where: Mapping[str, object]
    when: Callable[[Any], bool]
    skip: int
    on_call: int
    every: int
    probability: float
    seed: int
    times: int | None


NAMES = tuple(When.__annotations__)


class Seen(msgspec.Struct):
    """A request, as conditions see it. topics: to find names of topics by their ids, and the reverse.

    node_id: of the node that got it.
    """

    api_key: int
    version: int
    client_id: str
    message: Message
    topics: TopicNames
    found: list[Entity] | None = None
    node_id: int = 1

    @property
    def entities(self) -> list[Entity]:
        """What the request names."""
        if self.found is None:
            from kwire.broker.faults.entities import collect

            self.found = list(collect(self.message, self.api_key, self.version, self.topics))
        return self.found


class Conditions(msgspec.Struct, frozen=True, kw_only=True):
    """Which requests a fault is for. None: all. kinds: what of a request's elements is selected."""

    api_keys: frozenset[int] | None
    versions: tuple[int, int] | None = None
    nodes: frozenset[int] | None = None
    client_id: str | None = None
    topic: str | None = None
    topic_id: UUID | None = None
    partitions: frozenset[int] | None = None
    group: str | None = None
    transactional_id: str | None = None
    resource: str | None = None
    resource_type: int | None = None
    quota: tuple[tuple[str, str | None], ...] | None = None
    user: str | None = None
    where: tuple[tuple[tuple[str, ...], object], ...] = ()
    when: Callable[[Any], bool] | None = None

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of elements that are selected; a topic's id counts as its name."""
        given = {
            "topic": self.topic if self.topic is not None else self.topic_id,
            "partition": self.partitions,
            "group": self.group,
            "transactional_id": self.transactional_id,
            "resource": self.resource if self.resource is not None else self.resource_type,
            "quota": self.quota,
            "user": self.user,
        }
        return frozenset(kind for kind, value in given.items() if value is not None)

    def selects(self, entity: Entity) -> bool:
        """Return whether an element that names this is selected."""
        return (
            fits(self.topic, entity.get("topic"))
            and (self.topic_id is None or entity.get("topic_id") == self.topic_id)
            and (self.partitions is None or self._has_partition(entity))
            and fits(self.group, entity.get("group"))
            and fits(self.transactional_id, entity.get("transactional_id"))
            and fits(self.resource, entity.get("resource"))
            and (self.resource_type is None or entity.get("resource_type") == self.resource_type)
            and (self.quota is None or self._has_quota(entity))
            and fits(self.user, entity.get("user"))
        )

    def _has_quota(self, entity: Entity) -> bool:
        named = entity.get("quota") or {}
        return all(
            kind in named and (named[kind] is None if name is None else fits(name, named[kind]))
            for kind, name in self.quota or ()
        )

    def _has_partition(self, entity: Entity) -> bool:
        from kwire.broker.faults.entities import ANY

        assert self.partitions is not None
        partition = entity.get("partition")
        return partition is ANY or partition in self.partitions

    def hold_for(self, seen: Seen) -> bool:
        """Return whether a request meets the conditions."""
        if self.api_keys is not None and seen.api_key not in self.api_keys:
            return False
        if self.versions is not None and not self.versions[0] <= seen.version <= self.versions[1]:
            return False
        if not fits(self.client_id, seen.client_id) or (self.nodes is not None and seen.node_id not in self.nodes):
            return False
        if self.kinds and not any(map(self.selects, seen.entities)):
            return False
        if any(not holds(seen.message, path, value) for path, value in self.where):
            return False
        return self.when is None or bool(self.when(seen.message))


class Trigger:
    """Which of the requests that meet the conditions a fault applies to. Not thread-safe."""

    def __init__(
        self, *, times: int | None, skip: int = 0, on_call: int | None = None, every: int = 1,
        probability: float = 1.0, seed: int = 0,
    ) -> None:  # fmt: skip
        self.times, self._skip, self._on_call = times, skip, on_call
        self._every, self._probability, self._random = every, probability, random.Random(seed)
        self.calls = self.hits = 0

    @property
    def is_spent(self) -> bool:
        """Whether no further request can be hit."""
        return self.times == 0

    def fires(self) -> bool:
        """Count a request; return whether the fault applies to it."""
        self.calls += 1
        if self.is_spent:
            return False
        if self._on_call is not None:
            if self.calls != self._on_call:
                return False
        elif self.calls <= self._skip or (self.calls - self._skip) % self._every:
            return False
        if self._probability < 1 and self._random.random() >= self._probability:
            return False
        self.hits += 1
        if self.times is not None:
            self.times -= 1
        return True


def fits(pattern: str | None, value: object) -> bool:
    """Return whether a name fits a pattern, None for no condition."""
    return pattern is None or (isinstance(value, str) and (value == pattern or fnmatchcase(value, pattern)))


def holds(message: object, path: tuple[str, ...], value: object) -> bool:
    """Return whether a field of a message, or of any element of its arrays, has a value."""
    return any(each == value for each in _values(message, path))


def _values(part: object, path: tuple[str, ...]) -> Iterator[object]:
    if isinstance(part, list):
        for each in part:
            yield from _values(each, path)
    elif not path:
        yield part
    elif part is not None:
        yield from _values(getattr(part, path[0]), path[1:])


def parse_apis(apis: Apis, served: Served) -> frozenset[int] | None:
    """Return the keys of APIs by name, None for "*". Raises OptionError for APIs that the broker does not serve."""
    names = [apis] if isinstance(apis, str) or not isinstance(apis, Collection) else list(apis)
    if not names:
        raise OptionError('no API: name one, or use "*" for all')
    keys = set()
    for name in names:
        if not isinstance(name, str):
            raise OptionError(f"invalid API {name!r}: must be a name, such as 'Produce'")
        key = parse_api(name)
        if key is None:
            return None
        if key not in served:
            raise OptionError(f"{api_name(key)} can never match: the broker does not serve this API")
        keys.add(key)
    return frozenset(keys)


def parse_conditions(apis: Apis, when: Mapping[str, Any], served: Served) -> Conditions:
    """Return checked conditions. Raises OptionError for conditions that no request can meet, or that do not exist."""
    for name in when:
        if name not in NAMES:
            raise OptionError(f"unknown condition {name!r}{did_you_mean(name, NAMES)}; conditions: {', '.join(NAMES)}")
    keys = parse_apis(apis, served)
    conditions = Conditions(
        api_keys=keys,
        versions=_versions(keys, when.get("version"), served),
        nodes=parse_nodes(when.get("node")),
        client_id=_text(when, "client_id"),
        topic=_text(when, "topic"),
        topic_id=_topic_id(when.get("topic_id")),
        partitions=_partitions(when.get("partition")),
        group=_text(when, "group"),
        transactional_id=_text(when, "transactional_id"),
        resource=_text(when, "resource"),
        resource_type=_resource_type(when.get("resource_type")),
        quota=_quota(when.get("quota")),
        user=_text(when, "user"),
        when=_function(when.get("when")),
    )
    _check_topic(conditions.topic)
    if conditions.kinds and keys is not None:
        for key in keys:
            _check_kinds(key, conditions, served[key])
    if where := when.get("where"):
        conditions = msgspec.structs.replace(conditions, where=_where(keys, where))
    return conditions


def parse_trigger(when: Mapping[str, Any], times: int | None = 1) -> Trigger:
    """Return which requests in turn a fault applies to. times: the default. Raises OptionError."""
    given = {name: when[name] for name in ("skip", "on_call", "every", "probability", "seed") if name in when}
    for name, lowest in (("skip", 0), ("on_call", 1), ("every", 1), ("seed", 0)):
        if name in given and (not is_integer(given[name]) or given[name] < lowest):
            raise OptionError(f"invalid {name} {given[name]}: must be {lowest} or more")
    probability = given.get("probability")
    if probability is not None and not (isinstance(probability, int | float) and 0 < probability <= 1):
        raise OptionError(f"invalid probability {probability}: must be above 0 and at most 1")
    if "seed" in given and probability is None:
        raise OptionError("seed needs probability")
    others = [name for name in ("skip", "every", "probability", "times") if name in when]
    if "on_call" in given and others:
        raise OptionError(f"on_call and {others[0]} are mutually exclusive: on_call is one request")
    if "on_call" not in given and given.keys() & {"every", "probability"}:
        times = None
    times = when.get("times", times)
    if times is not None and (not is_integer(times) or times < 1):
        raise OptionError(f"invalid times {times}: must be 1 or more, or None for no limit")
    return Trigger(times=1 if "on_call" in given else times, **given)


def is_integer(value: object) -> TypeGuard[int]:
    """Return whether a value is an integer, and not a bool."""
    return isinstance(value, int) and not isinstance(value, bool)


def _integers(value: object) -> list[int] | None:
    """Return one or several integers as a list, None for anything else."""
    values = list(value) if isinstance(value, Iterable) and not isinstance(value, str) else [value]
    integers = [each for each in values if is_integer(each)]
    return integers if len(integers) == len(values) else None


def _text(when: Mapping[str, Any], name: str) -> str | None:
    value = when.get(name)
    if value is not None and (not isinstance(value, str) or (not value and name != "client_id")):
        raise OptionError(f"invalid {name} {value!r}: must be a name, or a pattern such as 'app-*'")
    return value


def _check_topic(topic: str | None) -> None:
    if topic is not None and not any(each in topic for each in PATTERNS) and not LEGAL_TOPIC.issuperset(topic):
        raise OptionError(f"topic {topic!r} can never match: names of topics have letters, digits, '.', '_' and '-'")


def _function(value: object) -> Callable[[Any], bool] | None:
    if value is not None and not callable(value):
        raise OptionError(f"invalid when {value!r}: must be a function of the request; use where for values of fields")
    return value


def _topic_id(value: object) -> UUID | None:
    if value is None or isinstance(value, UUID):
        return value
    from kwire.identifiers import parse_uuid

    text = str(value)
    try:
        return parse_uuid(text) if len(text) == KAFKA_ID_LENGTH else UUID(text)
    except (ValueError, Malformed):
        raise OptionError(f"invalid topic_id {text!r}: must be a UUID, or an id as Kafka prints it") from None


def _resource_type(value: object) -> int | None:
    if value is None:
        return None
    text = str(value).lower().replace("_", "-")
    if text not in RESOURCE_TYPES:
        hint = did_you_mean(text, tuple(RESOURCE_TYPES))
        raise OptionError(f"unknown resource_type {value!r}{hint}; types: {', '.join(RESOURCE_TYPES)}")
    return RESOURCE_TYPES[text]


def _quota(value: object) -> tuple[tuple[str, str | None], ...] | None:
    if value is None:
        return None
    if not isinstance(value, Mapping) or not value:
        raise OptionError(f"invalid quota {value!r}: must be the names of its entity, such as {{'user': 'alice'}}")
    for kind, name in value.items():
        if kind not in QUOTA_TYPES:
            hint = did_you_mean(str(kind), QUOTA_TYPES)
            raise OptionError(f"unknown type {kind!r} of a quota{hint}; types: {', '.join(QUOTA_TYPES)}")
        if name is not None and (not isinstance(name, str) or not name):
            raise OptionError(f"invalid {kind} {name!r} of a quota: must be a name, a pattern, or None for the default")
    return tuple(value.items())


def parse_nodes(value: object) -> frozenset[int] | None:
    """Return ids of nodes, None for all. Raises OptionError."""
    if value is None:
        return None
    numbers = _integers(value)
    if not numbers:
        raise OptionError(f"invalid node {value!r}: must be the id of a node, or several")
    return frozenset(numbers)


def _partitions(value: object) -> frozenset[int] | None:
    if value is None:
        return None
    numbers = _integers(value)
    if not numbers or min(numbers) < 0:
        raise OptionError(f"invalid partition {value!r}: must be a number from 0 on, or several")
    return frozenset(numbers)


def _versions(keys: frozenset[int] | None, value: object, served: Served) -> tuple[int, int] | None:
    """Return the lowest and highest version. Raises OptionError if an API does not have any of them."""
    if value is None:
        return None
    numbers = _integers(value)
    if not numbers or len(numbers) > 2 or numbers[0] > numbers[-1]:
        raise OptionError(f"invalid version {value!r}: must be a version, or the lowest and the highest")
    versions = numbers[0], numbers[-1]
    without = [key for key in (served if keys is None else keys) if not served_versions(served[key], versions)]
    if keys is not None and without:
        lowest, highest = served[without[0]].lowest, served[without[0]].highest
        what = f"the broker serves {api_name(without[0])} in versions {lowest} to {highest}"
        raise OptionError(f"version {value} can never match: {what}")
    if len(without) == len(served):
        raise OptionError(f"version {value} can never match: the broker serves no API in it")
    return versions


def served_versions(served: Range, versions: tuple[int, int] | None) -> range:
    """Return the versions of an API that are served, of those that are asked for."""
    lowest, highest = versions or (served.lowest, served.highest)
    return range(max(lowest, served.lowest), min(highest, served.highest) + 1)


def _check_kinds(key: int, conditions: Conditions, served: Range) -> None:
    """Raise OptionError if requests of an API never name what is selected."""
    from kwire.broker.faults.shapes import KINDS, kinds_of, request_shape

    named: set[str] = set()
    for version in served_versions(served, conditions.versions):
        named |= kinds_of(request_shape(key, version))
    if key in METADATA_APIS:
        named.add("partition")
    missing = [kind for kind in KINDS if kind in conditions.kinds - named]
    if missing:
        kinds = [kind for kind in KINDS if kind in named]
        hint = f"; use {' or '.join(kinds)}" if kinds else ""
        raise OptionError(f"{missing[0]} can never match: {api_name(key)} requests name no {missing[0]}{hint}")


def _where(keys: frozenset[int] | None, where: object) -> tuple[tuple[tuple[str, ...], object], ...]:
    """Return fields and their values. Raises OptionError for fields that the requests do not have."""
    from kwire.broker.faults.fields import find_field, to_value
    from kwire.messages import registry

    if keys is None or len(keys) != 1:
        raise OptionError("where needs one API, whose fields it names")
    if not isinstance(where, Mapping):
        raise OptionError(f"invalid where {where!r}: must be values by the names of fields, such as {{'acks': 0}}")
    (key,) = keys
    cls = registry.request(key)
    pairs = []
    for name, value in where.items():
        path, field = find_field(cls, name)
        pairs.append((tuple(part for part in path if isinstance(part, str)), to_value(cls, field, value, name)))
    return tuple(pairs)

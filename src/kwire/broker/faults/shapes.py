"""Where messages name topics, partitions, groups and transactional ids, and where they carry errors.

A message is seen as a tree of levels. A level is an array whose elements name something, such as `topics`, and may have
levels in turn, such as the `partitions` of a topic. Markers of WriteTxnMarkers and directories of AlterReplicaLogDirs
name nothing, but have levels. Shapes are read off the definitions (entityType), so they cover every API and version;
resources of configs, entities of quotas and users have no type there.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import msgspec

from kwire.messages import registry

if TYPE_CHECKING:
    from kwire.messages.base import Message
    from kwire.schema.model import Field, Struct

__all__ = ["COORDINATOR_KEY", "KINDS", "Level", "Shape", "error_level", "kinds_of", "request_shape", "response_shape"]

ENTITY_TYPES = {"topicName": "topic", "groupId": "group", "transactionalId": "transactional_id"}
KINDS = ("topic", "partition", "group", "transactional_id", "resource", "quota", "user")
COORDINATOR_KEY = "coordinator_key"
"""A key of FindCoordinator: a group or a transactional id, by the request's key_type."""
NAMED = {"topic_id": ("topic",), "resource_type": ("resource",), COORDINATOR_KEY: ("group", "transactional_id")}
QUOTA = "quota"
"""The entity of a quota: an array of types with names."""
CONFIG_APIS = ("DescribeConfigs", "AlterConfigs", "IncrementalAlterConfigs")
OTHER_KINDS = {
    **{(api, "resource_name"): "resource" for api in CONFIG_APIS},
    **{(api, "resource_type"): "resource_type" for api in CONFIG_APIS},
    ("AlterClientQuotas", "entity"): QUOTA,
    ("AlterUserScramCredentials", "name"): "user",
    ("AlterUserScramCredentials", "user"): "user",
    ("DescribeUserScramCredentials", "name"): "user",
    ("DescribeUserScramCredentials", "user"): "user",
}
"""Kinds of fields that have no entityType in the definitions, by API and attribute."""
PARTITION_FIELDS = frozenset({"partition", "partition_index", "partition_id", "index"})
PARTITION_ARRAYS = frozenset({"partitions", "partition_indexes"})
ERROR_FIELDS = ("error_code", "partition_error_code")
TEXT_FIELDS = ("error_message",)
NOT_ENTITIES = frozenset(
    {
        ("FetchRequest", "forgotten_topics_data"),  # what is no longer fetched
        ("CreateTopicsRequest", "assignments"),  # part of a topic
        ("AlterPartitionReassignmentsRequest", "replicas"),
    }
)


class Level(msgspec.Struct, frozen=True, kw_only=True):
    """An array. attr: its attribute in the message or element above it. struct: name of its elements' class, or None.

    kinds: attribute of an element by what it names: a kind or topic_id; None if the element itself is the name.
    error, text: attributes with an element's error code and message, if any.
    """

    attr: str
    struct: str | None
    kinds: Mapping[str, str | None]
    levels: tuple[Level, ...]
    error: str | None = None
    text: str | None = None

    @property
    def names(self) -> frozenset[str]:
        """The kinds that an element names; a topic's id counts as its name."""
        return named_by(self.kinds)


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """The levels of a message in one version, and what it names or carries itself."""

    cls: type[Message]
    kinds: Mapping[str, str | None]
    levels: tuple[Level, ...]
    error: str | None


@functools.lru_cache(maxsize=1024)
def request_shape(api_key: int, version: int) -> Shape:
    """Return the shape of an API's request: levels that name something."""
    return _shape(registry.request(api_key), version)


@functools.lru_cache(maxsize=1024)
def response_shape(api_key: int, version: int) -> Shape:
    """Return the shape of an API's response: levels with errors, or with such levels."""
    shape = _shape(registry.response(api_key), version)
    return msgspec.structs.replace(shape, levels=tuple(filter(None, map(_with_errors, shape.levels))))


def kinds_of(shape: Shape) -> frozenset[str]:
    """Return the kinds that a message names anywhere."""

    def below(level: Level) -> Iterator[str]:
        yield from level.names
        for each in level.levels:
            yield from below(each)

    return named_by(shape.kinds).union(*map(below, shape.levels))


def named_by(kinds: Iterable[str]) -> frozenset[str]:
    """Return what is named by kinds of attributes: a topic also by its id."""
    named: set[str] = set()
    for kind in kinds:
        named.update(NAMED.get(kind, (kind,)))
    return frozenset(named)


def error_level(api_key: int, version: int, selected: frozenset[str]) -> frozenset[str] | None:
    """Return what an element of the highest level names that has an error of its own for each of the selected kinds.

    None: the API only has an error for the whole response of such requests.
    """
    request, response = request_shape(api_key, version), response_shape(api_key, version)
    needed = selected - named_by(request.kinds)
    if not needed:
        return None
    level_by_level = [(level, level.names) for level in response.levels]
    while level_by_level:
        for level, named in level_by_level:
            if level.error and needed <= named:
                return named
        level_by_level = [(below, named | below.names) for level, named in level_by_level for below in level.levels]
    return None


def _shape(cls: type[Message], version: int) -> Shape:
    struct = cls.SPEC.struct
    kinds, levels = _parts(cls.__name__, struct, version, in_topic=False)
    if cls.__name__ == "FindCoordinatorRequest":
        kinds = {COORDINATOR_KEY: "key"} if version in _field(struct, "key").versions else {}
        levels = () if kinds else (_keys("coordinator_keys", None, None),)
    elif cls.__name__ == "FindCoordinatorResponse" and version in _field(struct, "coordinators").versions:
        levels = (_keys("coordinators", "Coordinator", "key"),)
    return Shape(cls=cls, kinds=kinds, levels=levels, error=_first(ERROR_FIELDS, struct, version))


def _keys(attr: str, struct: str | None, key: str | None) -> Level:
    error, text = (ERROR_FIELDS[0], TEXT_FIELDS[0]) if struct else (None, None)
    return Level(attr=attr, struct=struct, kinds={COORDINATOR_KEY: key}, levels=(), error=error, text=text)


def _field(struct: Struct, attr: str) -> Field:
    return next(field for field in struct.fields if field.attr == attr)


def _parts(
    message: str, struct: Struct, version: int, *, in_topic: bool
) -> tuple[dict[str, str | None], tuple[Level, ...]]:
    """Return what a struct names, and its levels. in_topic: whether a level above names a topic."""
    kinds: dict[str, str | None] = {}
    fields = [
        field for field in struct.fields if version in field.versions and (message, field.attr) not in NOT_ENTITIES
    ]
    api = message.removesuffix("Request").removesuffix("Response")
    for field in fields:
        kind = OTHER_KINDS.get((api, field.attr))
        if field.is_array and kind is None:
            continue
        kind = kind or ENTITY_TYPES.get(field.entity_type)
        if kind is None and field.attr == "topic_id" and field.type == "uuid":
            kind = "topic_id"
        elif kind is None and in_topic and field.attr in PARTITION_FIELDS and field.type == "int32":
            kind = "partition"
        if kind is not None:
            kinds.setdefault(kind, field.attr)
    in_topic = in_topic or bool(kinds.keys() & {"topic", "topic_id"})
    return kinds, tuple(filter(None, (_level(message, field, version, in_topic) for field in fields if field.is_array)))


def _level(message: str, field: Field, version: int, in_topic: bool) -> Level | None:
    if field.struct is not None:
        kinds, levels = _parts(message, field.struct, version, in_topic=in_topic)
        if not kinds and not levels:
            return None
        error, text = (_first(names, field.struct, version) for names in (ERROR_FIELDS, TEXT_FIELDS))
        return Level(attr=field.attr, struct=field.struct.name, kinds=kinds, levels=levels, error=error, text=text)
    kind = ENTITY_TYPES.get(field.entity_type)
    if kind is None and in_topic and field.attr in PARTITION_ARRAYS and field.type == "int32":
        kind = "partition"
    return Level(attr=field.attr, struct=None, kinds={kind: None}, levels=()) if kind else None


def _first(names: tuple[str, ...], struct: Struct, version: int) -> str | None:
    """Return the first of some names that is a field of a struct in a version."""
    attrs = {field.attr for field in struct.fields if version in field.versions}
    return next((name for name in names if name in attrs), None)


def _with_errors(level: Level) -> Level | None:
    """Return a level of a response without the levels below that have no errors; None if it has none itself."""
    below = tuple(filter(None, map(_with_errors, level.levels)))
    return msgspec.structs.replace(level, levels=below) if below or level.error else None

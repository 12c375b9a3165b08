"""What a request names, and the split of a request into the part that a fault answers and the rest.

An error for one partition leaves the others alone: the request is divided, the broker handles the rest, the other part
gets errors in the form of the response, and the two responses are merged.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol
from uuid import UUID

from kwire.broker.faults.names import FETCH, METADATA, METADATA_APIS, SHARE_FETCH
from kwire.broker.faults.shapes import COORDINATOR_KEY, QUOTA, Level, request_shape, response_shape

if TYPE_CHECKING:
    from kwire.messages.base import Message
    from kwire.protocol.error_codes import ErrorCode

__all__ = ["ANY", "Entity", "TopicNames", "collect", "divide", "failed", "mark", "merge"]

Entity = Mapping[str, Any]
"""What one element of a message names: value by kind, with both name and id of a topic where they are known."""
Test = Callable[[Entity], bool]

ANY: Any = object()
"""A partition that is named by the response only."""
SESSIONS_VERSION = 7
UNKNOWN_VALUES = ("base_offset", "committed_offset", "low_watermark", "node_id", "port")
"""Fields that are -1 beside an error. Others have such a default in their definition."""


class TopicNames(Protocol):
    """The topics of a broker, as far as requests refer to them."""

    def name_of(self, topic_id: UUID) -> str | None:
        """Return the name of a topic, None for an unknown id."""

    def id_of(self, name: str) -> UUID | None:
        """Return the id of a topic, None for an unknown name."""

    def names(self) -> list[str]:
        """Return the names of all topics."""

    def fetched(self, session_id: int) -> list[tuple[str | UUID, int]]:
        """Return the partitions of a fetch session, by topic name or id."""

    def share_fetched(self, group_id: str, member_id: str) -> list[tuple[UUID, int]]:
        """Return the partitions of a member's share session."""


def collect(message: Message, api_key: int, version: int, topics: TopicNames) -> Iterator[Entity]:
    """Yield what a request names: an entity for each of the deepest elements, or one for the request."""
    shape = request_shape(api_key, version)
    root = _named(message, shape.kinds, {}, topics, _key_kind(message))
    if api_key in METADATA_APIS:
        requested = message.topics  # type: ignore[attr-defined]
        has_all = requested is None or (not requested and (version == 0 or api_key != METADATA))
        for name in topics.names() if has_all else ():
            yield {**_topic(name, topics), "partition": ANY}
        for element in requested or ():
            yield {**_named(element, shape.levels[0].kinds, root, topics, ""), "partition": ANY}
        return
    if api_key == FETCH and version >= SESSIONS_VERSION:
        for topic, index in topics.fetched(message.session_id):  # type: ignore[attr-defined]
            yield {**_topic(topic, topics), "partition": index}
    if api_key == SHARE_FETCH and message.share_session_epoch > 0:  # type: ignore[attr-defined]
        session = topics.share_fetched(message.group_id or "", message.member_id or "")  # type: ignore[attr-defined]
        for topic_id, index in session:
            yield {**root, **_topic(topic_id, topics), "partition": index}
    found = list(_leaves(message, shape.levels, root, topics, _key_kind(message)))
    yield from found or ([root] if root else [])


def _key_kind(message: Message) -> str:
    """Return what the keys of FindCoordinator name. Irrelevant for other requests."""
    return {0: "group", 1: "transactional_id"}.get(getattr(message, "key_type", 0), "")


def _topic(topic: str | UUID, topics: TopicNames) -> dict[str, Any]:
    if isinstance(topic, UUID):
        return {"topic_id": topic, "topic": topics.name_of(topic)}
    return {"topic": topic, "topic_id": topics.id_of(topic)}


def _named(element: Any, kinds: Mapping[str, str | None], above: Entity, topics: TopicNames, key_kind: str) -> Entity:
    """Return what an element names, with what is named above it."""
    if not kinds:
        return above
    named = dict(above)
    for kind, attr in kinds.items():
        value = element if attr is None else getattr(element, attr)
        if kind == COORDINATOR_KEY:
            named[key_kind] = value
        elif kind == QUOTA:
            named[kind] = {each.entity_type: each.entity_name for each in value}
        elif kind == "topic":
            if value is not None and (value or "topic_id" not in kinds):
                named |= _topic(value, topics)
        elif kind == "topic_id":
            if value.int:
                named |= _topic(value, topics)
        elif value is not None:
            named[kind] = value
    return named


def _leaves(
    parent: Any, levels: tuple[Level, ...], above: Entity, topics: TopicNames, key_kind: str
) -> Iterator[Entity]:
    for level in levels:
        for element in getattr(parent, level.attr) or ():
            named = _named(element, level.kinds, above, topics, key_kind)
            below = list(_leaves(element, level.levels, named, topics, key_kind)) if level.levels else []
            yield from below or [named]


class _Division:
    """The division of a request. named: what the elements name that go to one side or the other as a whole."""

    def __init__(self, named: frozenset[str], test: Test, topics: TopicNames, key_kind: str) -> None:
        self.named, self.test, self.topics, self.key_kind = named, test, topics, key_kind

    def of(self, parent: Any, levels: tuple[Level, ...], above: Entity, names: frozenset[str]) -> tuple[Any, Any]:
        """Return copies of a parent with the elements that pass the test, and with the others; None for no elements."""
        matched, rest = copy.copy(parent), copy.copy(parent)
        has_matched = has_rest = False
        for level in levels:
            inside: list[Any] = []
            outside: list[Any] = []
            below = names | level.names
            for element in getattr(parent, level.attr) or ():
                named = _named(element, level.kinds, above, self.topics, self.key_kind)
                if self.named <= below or not level.levels:
                    (inside if self.test(named) else outside).append(element)
                    continue
                one, other = self.of(element, level.levels, named, below)
                if one is not None:
                    inside.append(one)
                if other is not None:
                    outside.append(other)
            setattr(matched, level.attr, inside)
            setattr(rest, level.attr, outside if outside or inside else getattr(parent, level.attr))
            has_matched, has_rest = has_matched or bool(inside), has_rest or bool(outside)
        return matched if has_matched else None, rest if has_rest or not has_matched else None


def divide(
    message: Message, api_key: int, version: int, named: frozenset[str], test: Test, topics: TopicNames
) -> tuple[Message | None, Message | None]:
    """Divide a request into what passes a test, and the rest; each is None if it would be without elements.

    named: kinds that the divided elements name, from shapes.error_level.
    """
    shape = request_shape(api_key, version)
    key_kind = _key_kind(message)
    root = _named(message, shape.kinds, {}, topics, key_kind)
    division = _Division(named, test, topics, key_kind)
    matched, rest = division.of(message, shape.levels, root, frozenset(shape.kinds))
    return matched, rest


def failed(message: Message, api_key: int, version: int, code: ErrorCode, text: str) -> Message:
    """Return the response to a request in which each element of the lowest level with errors has an error."""
    request, response = request_shape(api_key, version), response_shape(api_key, version)
    body = response.cls()
    for level, elements in _mirrored(message, request.levels, response.levels, response.cls, code, text):
        setattr(body, level.attr, elements)
    return body


def _mirrored(
    parent: Any, asked: tuple[Level, ...], levels: tuple[Level, ...], cls: type, code: ErrorCode, text: str
) -> Iterator[tuple[Level, list[Any]]]:
    for level in levels:
        elements: list[Any] = []
        if level.struct is None:
            continue
        for source, element in _sources(parent, asked, level):
            made = getattr(cls, level.struct)()
            for kind, attr in level.kinds.items():
                if kind in source.kinds and attr is not None:
                    own = source.kinds[kind]
                    value = element if own is None else getattr(element, own)
                    if kind == QUOTA:
                        parts = [(each.entity_type, each.entity_name) for each in value]
                        value = [cls.EntityData(entity_type=one, entity_name=name) for one, name in parts]  # type: ignore[attr-defined]
                    setattr(made, attr, value)
            if level.struct == "WritableTxnMarkerResult":
                made.producer_id = element.producer_id
            has_below = False
            for below, made_below in _mirrored(element, source.levels, level.levels, cls, code, text):
                setattr(made, below.attr, made_below)
                has_below = has_below or bool(made_below)
            if level.error and not has_below:
                set_error(made, level, code, text)
            elements.append(made)
        yield level, elements


def _sources(parent: Any, asked: tuple[Level, ...], level: Level) -> Iterator[tuple[Level, Any]]:
    """Yield the elements of a request that an array of the response is about, with their level."""
    for each in asked:
        if each.names == level.names:
            for element in getattr(parent, each.attr) or ():
                yield each, element
        elif not each.kinds:  # a directory of AlterReplicaLogDirs, which is not repeated in the response
            for element in getattr(parent, each.attr) or ():
                yield from _sources(element, each.levels, level)


def set_error(element: Any, level: Level, code: ErrorCode, text: str) -> None:
    """Set the error of an element of a response, and what is unknown beside an error."""
    assert level.error is not None
    setattr(element, level.error, int(code))
    if level.text is not None:
        setattr(element, level.text, text)
    fields = element.__struct_fields__
    for name in UNKNOWN_VALUES:
        if name in fields and name not in level.kinds.values():
            setattr(element, name, -1)
    if "records" in fields:
        element.records = b""  # as in Kafka; null is not allowed in ShareFetch


def mark(body: Message, api_key: int, version: int, test: Test, code: ErrorCode, text: str, topics: TopicNames) -> None:
    """Set the error of the elements of a Metadata response that pass a test: topics, or partitions.

    A topic with an error has no partitions, a partition no leader.
    """
    for level in response_shape(api_key, version).levels:
        for topic in getattr(body, level.attr):
            named = _named(topic, level.kinds, {}, topics, "group")
            if test(named):
                set_error(topic, level, code, text)
                topic.partitions = []
                continue
            (below,) = level.levels
            for partition in topic.partitions:
                if test(_named(partition, below.kinds, named, topics, "group")):
                    set_error(partition, below, code, text)
                    partition.leader_id = -1


def merge(body: Message, other: Message, api_key: int, version: int) -> None:
    """Add the elements of another response to the same API to a response; equal names become one element."""
    _merge(body, other, response_shape(api_key, version).levels)


def _merge(parent: Any, other: Any, levels: tuple[Level, ...]) -> None:
    for level in levels:
        elements = list(getattr(parent, level.attr) or ())
        known = {_identity(each, level): each for each in elements}
        for element in getattr(other, level.attr) or ():
            same = known.get(_identity(element, level))
            if same is not None and level.levels:
                _merge(same, element, level.levels)
            else:
                elements.append(element)
        setattr(parent, level.attr, elements)


def _identity(element: Any, level: Level) -> tuple[Any, ...]:
    if not level.kinds:
        return (getattr(element, "producer_id", None),)
    if QUOTA in level.kinds:
        return tuple(sorted((each.entity_type, each.entity_name or "") for each in element.entity))
    return tuple(element if attr is None else getattr(element, attr) for attr in level.kinds.values())

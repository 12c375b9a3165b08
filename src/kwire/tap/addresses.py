"""Addresses of brokers in responses, and their replacement by those of the tap's listeners.

Which responses carry addresses is read off the definitions: a struct with a host, a port and the id of a node. Others
are left alone: DescribeQuorum lists the listeners of controllers, which clients do not connect to, and members of
streams groups name endpoints of applications.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from kwire.errors import UnsupportedVersion
from kwire.messages import registry

if TYPE_CHECKING:
    from kwire.messages.base import Message
    from kwire.schema import Versions
    from kwire.schema.model import Struct

__all__ = ["CONTROLLERS", "Node", "Place", "carriers", "carries_addresses", "replace_addresses"]

NODE_IDS = ("node_id", "broker_id", "leader_id")
CONTROLLERS = 2
"""The endpoint type of DescribeCluster that asks for controllers."""


class Node(msgspec.Struct, frozen=True):
    """A node of a cluster. is_controller: whether the address is that of a listener for controllers."""

    node_id: int
    is_controller: bool = False


Place = Callable[[Node, str, int], tuple[str, int]]
"""(node, its host, its port) -> host and port that clients are sent to instead."""


class Carrier(msgspec.Struct, frozen=True):
    """Where a response has addresses: an array or a struct of this attribute, or itself (""). node_id: an attribute."""

    attr: str
    node_id: str
    versions: Versions


@functools.cache
def carriers(api_key: int) -> tuple[Carrier, ...]:
    """Return where the responses of an API have addresses of nodes. An unknown API has none."""
    try:
        cls = registry.response(api_key)
    except UnsupportedVersion:
        return ()
    return tuple(_carriers(cls.SPEC.struct))


def _carriers(root: Struct) -> Iterator[Carrier]:
    for attr, struct in [("", root), *((field.attr, field.struct) for field in root.fields)]:
        if struct is None:
            continue
        fields = {field.attr: field for field in struct.fields}
        node_id = next((name for name in NODE_IDS if name in fields), None)
        if node_id is None or "host" not in fields or "port" not in fields:
            continue
        versions = fields["host"].versions
        if attr:
            versions = versions.intersect(next(field.versions for field in root.fields if field.attr == attr))
        yield Carrier(attr, node_id, versions)


@functools.cache
def carries_addresses(api_key: int, version: int) -> bool:
    """Return whether a response may have addresses of nodes."""
    return any(version in each.versions for each in carriers(api_key))


def replace_addresses(body: Message, api_key: int, version: int, place: Place) -> bool:
    """Replace the addresses in a response; returns whether it has changed.

    An element without an address, as beside an error, is unchanged. Ids of nodes below 0 name none.
    """
    is_controller = getattr(body, "endpoint_type", 1) == CONTROLLERS
    has_changed = False
    for carrier in carriers(api_key):
        if version not in carrier.versions:
            continue
        found = getattr(body, carrier.attr) if carrier.attr else body
        elements: list[Any] = found if isinstance(found, list) else [found]
        for each in sorted((each for each in elements if each is not None), key=lambda each: _id(each, carrier)):
            node_id = _id(each, carrier)
            if node_id < 0 or not each.host or each.port <= 0:
                continue
            new = place(Node(node_id, is_controller), each.host, each.port)
            if new != (each.host, each.port):
                each.host, each.port = new
                has_changed = True
    return has_changed


def _id(element: Any, carrier: Carrier) -> int:
    return int(getattr(element, carrier.node_id))

"""What the control server offers: a table of routes, each of which calls methods of the broker.

Bodies are JSON objects. Their members are checked against the table: unknown ones and wrong types are errors.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from kwire.broker.faults.conditions import NAMES
from kwire.broker.faults.effects import Kind
from kwire.broker.patience import Patience
from kwire.broker.waiting import wait_until_stable
from kwire.errors import EncodeError, OptionError, did_you_mean

if TYPE_CHECKING:
    from kwire.broker import Broker, Cluster
    from kwire.broker.faults import Fault
    from kwire.broker.request_log import LoggedRequest
    from kwire.broker.waiting import GroupState
    from kwire.messages.base import Message

__all__ = ["ROUTES", "Controlled", "Missing", "Route", "find_route"]

WAIT_MS, MAX_WAIT_MS = 30_000, 600_000
LISTED_REQUESTS, MAX_LISTED_REQUESTS = 100, 1000
CONDITIONS = tuple(name for name in NAMES if name != "when")

Values = dict[str, Any]


class Controlled(Protocol):
    """What is controlled: a broker, a cluster, or something else with routes of its own."""

    @property
    def is_running(self) -> bool:
        """Whether clients can connect."""


class Missing(Exception):
    """What a path names does not exist."""


class Route(NamedTuple):
    """A method and path, with {names} in it, and what it does.

    body: the members of the body by type; None for any. required: those that it must have. query: of the query string.
    waits: whether it takes a Patience, too.
    """

    method: str
    path: str
    act: Callable[..., object]
    summary: str
    body: Mapping[str, str] | None = {}
    required: tuple[str, ...] = ()
    query: tuple[str, ...] = ()
    waits: bool = False

    def run(self, broker: Controlled, values: Values, is_abandoned: Callable[[], bool]) -> object:
        """Do it, and return the result. is_abandoned: whether nobody waits for it any more; Abandoned if so."""
        if not self.waits:
            return self.act(broker, values)
        patience = Patience(timeout_s(values), is_abandoned)
        values.pop("timeout_ms", None)
        return self.act(broker, values, patience)


TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "object": dict,
}


def find_route(method: str, path: str, routes: Sequence[Route]) -> tuple[Route, Values]:
    """Return the route of a request, and the values of the names in its path. Raises Missing."""
    others = []
    for route in routes:
        found = re.fullmatch(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", route.path), path)
        if found and route.method == method:
            return route, found.groupdict()
        if found:
            others.append(route.method)
    if others:
        raise Missing(f"{path} has no method {method}, only {', '.join(others)}")
    raise Missing(f"no such path: {path}{did_you_mean(path, [each.path for each in routes])}; see /openapi.json")


def check_body(route: Route, body: Values) -> None:
    """Raise OptionError for members that the route does not have, that are missing or have another type."""
    if route.body is None:
        return
    for name, value in body.items():
        kind = route.body.get(name)
        if kind is None:
            raise OptionError(f"unknown member {name!r}{did_you_mean(name, route.body)}")
        if not isinstance(value, TYPES[kind]) or isinstance(value, bool):
            raise OptionError(f"invalid {name} {value!r}: must be of type {kind}")
    for name in route.required:
        if name not in body:
            raise OptionError(f"{name} is missing")


# --- faults


def add_fault(broker: Broker, values: Values) -> object:
    """Add a fault: the method of Faults with its arguments."""
    kinds = [kind.value for kind in Kind]
    name = values.pop("effect", None)
    if name not in kinds:
        hint = did_you_mean(name, kinds) if isinstance(name, str) else ""
        raise OptionError(f"unknown effect {name!r}{hint}; effects: {', '.join(kinds)}")
    if "when" in values:
        raise OptionError("when is a function of Python: use where for the values of fields")
    method = getattr(broker.faults, name)
    try:
        inspect.signature(method).bind(**values)
    except TypeError as error:
        raise OptionError(f"{name}: {error}") from None
    return shown_fault(method(**values))


def find_fault(broker: Broker, values: Values) -> Fault:
    """Return the fault of the path. Raises Missing."""
    text = str(values["id"])
    fault = broker.faults.get(int(text)) if text.isascii() and text.isdigit() and len(text) < 19 else None
    if fault is None:
        raise Missing(f"no fault {text}: it was removed, or the broker was reset")
    return fault


def shown_fault(fault: Fault) -> Values:
    """Return a fault as JSON has it."""
    return {
        "id": fault.number,
        "effect": fault.effect.kind.value,
        **fault.given,
        "hits": fault.hits,
        "calls": fault.calls,
        "held": fault.held,
        "left": fault.times,
        "active": fault.is_active,
    }


def list_faults(broker: Broker, _values: Values) -> object:
    """List the faults."""
    return {"faults": [shown_fault(fault) for fault in broker.faults.all]}


def clear_faults(broker: Broker, _values: Values) -> object:
    """Remove all faults."""
    count = len(broker.faults.all)
    broker.faults.clear()
    return {"removed": count}


def show_fault(broker: Broker, values: Values) -> object:
    """Return a fault."""
    return shown_fault(find_fault(broker, values))


def remove_fault(broker: Broker, values: Values) -> object:
    """Remove a fault; returns its last state."""
    fault = find_fault(broker, values)
    broker.faults.forget(fault)
    return shown_fault(fault)


def wait_for_fault(broker: Broker, values: Values, patience: Patience) -> object:
    """Wait until a fault has applied."""
    fault = find_fault(broker, values)
    fault.wait_with(patience, values.get("hits", 1))
    return shown_fault(fault)


def release_fault(broker: Broker, values: Values) -> object:
    """Release what a fault holds."""
    return {"released": find_fault(broker, values).release(values.get("count"))}


# --- requests


def list_requests(broker: Broker, values: Values) -> object:
    """Return the last requests, oldest first."""
    text = str(values.get("limit", LISTED_REQUESTS))
    limit = int(text) if text.isascii() and text.isdigit() and len(text) < 6 else 0
    if not 1 <= limit <= MAX_LISTED_REQUESTS:
        raise OptionError(f"invalid limit {text!r}: must be 1 to {MAX_LISTED_REQUESTS}")
    kept = broker.requests.of(values.get("api", "*"))
    return {"total": len(kept), "requests": [shown_request(each) for each in kept[-limit:]]}


def clear_requests(broker: Broker, _values: Values) -> object:
    """Forget the requests."""
    broker.requests.clear()
    return {}


def wait_for_request(broker: Broker, values: Values, patience: Patience) -> object:
    """Wait for a request."""
    if "api" not in values:
        raise OptionError("api is missing")
    if "when" in values:
        raise OptionError("when is a function of Python: use where for the values of fields")
    return shown_request(broker.wait_for_with(patience, values.pop("api"), **values))


def shown_request(entry: LoggedRequest) -> Values:
    """Return a request as JSON has it; messages in Kafka's own JSON form."""
    return {
        "time_ms": entry.time_ms,
        "api": entry.api,
        "api_version": entry.api_version,
        "client_id": entry.client_id,
        "principal": entry.principal,
        "node": entry.node_id,
        "errors": entry.errors,
        "request": shown_message(entry.request, entry.api_version),
        "response": shown_message(entry.response, entry.api_version),
    }


def shown_message(message: Message | None, version: int) -> object:
    """Return a message in Kafka's JSON form, None for one that was not sent or has no such version."""
    try:
        return None if message is None else message.to_json(version=version)
    except EncodeError:
        return None


# --- topics, groups, nodes, time


def list_topics(broker: Broker, _values: Values) -> object:
    """List the topics."""
    found = broker.call(
        lambda node: [(topic.name, str(topic.topic_id), len(topic.partitions)) for topic in node.topics]
    )
    return {"topics": [{"name": name, "id": topic_id, "partitions": count} for name, topic_id, count in found]}


def create_topic(broker: Broker, values: Values) -> object:
    """Create a topic."""
    configs = values.get("configs", {})
    for name, value in configs.items():
        if not isinstance(value, str | int | float):
            raise OptionError(f"invalid configs.{name} {value!r}: must be a string, a number or a boolean")
    broker.create_topic_with(configs, values["name"], values.get("partitions"))
    return find_topic(broker, values)


def find_topic(broker: Broker, values: Values) -> object:
    """Return a topic. Raises Missing."""
    topics: Any = list_topics(broker, values)
    for topic in topics["topics"]:
        if topic["name"] == values["name"]:
            return topic
    names = [topic["name"] for topic in topics["topics"]]
    raise Missing(f"no topic {values['name']!r}{did_you_mean(values['name'], names)}")


def delete_topic(broker: Broker, values: Values) -> object:
    """Delete a topic."""
    found = find_topic(broker, values)

    def delete(node: Any) -> None:
        topic = node.topics.get(values["name"])
        if topic is not None:  # still there
            node.controller.delete_topic(topic)

    broker.call(delete)
    return found


def shown_group(state: GroupState) -> Values:
    """Return the state of a group as JSON has it."""
    return {"group": state.group, "type": state.kind, "state": state.state, "members": dict(state.members)}


def show_group(broker: Broker, values: Values) -> object:
    """Return the state of a group. Raises Missing."""
    state = broker.group_state(values["group"])
    if not state.kind:
        raise Missing(f"no group {values['group']!r}")
    return shown_group(state)


def wait_for_group(broker: Broker, values: Values, patience: Patience) -> object:
    """Wait until a group is stable."""
    return shown_group(wait_until_stable(broker.group_state, values["group"], values.get("members"), patience))


def show_broker(broker: Broker, _values: Values) -> object:
    """Return the addresses and the clock."""
    now_ms = broker.call(lambda node: node.clock.now_ms())
    shown: Values = {"bootstrap_servers": broker.bootstrap_servers, "now_ms": now_ms, "openapi": "/openapi.json"}
    if hasattr(broker, "nodes"):
        shown["nodes"] = [each._asdict() for each in broker.nodes]
    return shown


def advance(broker: Broker, values: Values) -> object:
    """Advance the clock."""
    broker.advance(values["ms"])
    return {"now_ms": broker.call(lambda node: node.clock.now_ms())}


def reset(broker: Broker, _values: Values) -> object:
    """Reset the broker."""
    broker.reset()
    return {}


def cluster_of(broker: Broker) -> Cluster:
    """Return the broker as a cluster. Raises OptionError if it is a single node."""
    from kwire.broker import Cluster

    if not isinstance(broker, Cluster):
        raise OptionError("the broker is a single node: start it with --nodes")
    return broker


def node_id(values: Values) -> int:
    """Return the node of the path. Raises Missing."""
    text = str(values["node"])
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise Missing(f"no node {text}")
    return int(text)


def stop_node(broker: Broker, values: Values) -> object:
    """Stop a node."""
    cluster_of(broker).stop(node_id(values))
    return show_broker(broker, values)


def crash_node(broker: Broker, values: Values) -> object:
    """Crash a node."""
    cluster_of(broker).crash(node_id(values))
    return show_broker(broker, values)


def start_node(broker: Broker, values: Values) -> object:
    """Start a node."""
    cluster_of(broker).start(node_id(values))
    return show_broker(broker, values)


def move_leader(broker: Broker, values: Values) -> object:
    """Move the leader of a partition."""
    moved = cluster_of(broker).move_leader(values["topic"], values["partition"], values.get("to"))
    return {"node": moved}


def move_coordinator(broker: Broker, values: Values) -> object:
    """Move the coordinator of a group or transactional id."""
    return {"node": cluster_of(broker).move_coordinator(values["name"], values.get("to"))}


def timeout_s(values: Values) -> float:
    """Return timeout_ms in seconds. Raises OptionError."""
    timeout_ms = values.get("timeout_ms", WAIT_MS)
    if not isinstance(timeout_ms, int) or isinstance(timeout_ms, bool) or not 0 <= timeout_ms <= MAX_WAIT_MS:
        raise OptionError(f"invalid timeout_ms {timeout_ms!r}: must be 0 to {MAX_WAIT_MS}")
    return timeout_ms / 1000


WAIT = {"timeout_ms": "integer"}
ROUTES = (
    Route("GET", "/", show_broker, "Addresses, nodes and clock of the broker"),
    Route("POST", "/faults", add_fault, "Add a fault", None, ("effect",)),
    Route("GET", "/faults", list_faults, "All faults, also those that are used up"),
    Route("DELETE", "/faults", clear_faults, "Remove all faults, and release what they hold"),
    Route("GET", "/faults/{id}", show_fault, "A fault with its hits"),
    Route("DELETE", "/faults/{id}", remove_fault, "Remove a fault, and release what it holds"),
    Route(
        "POST", "/faults/{id}/wait", wait_for_fault, "Wait for hits of a fault",
        {"hits": "integer", **WAIT}, waits=True,
    ),
    Route("POST", "/faults/{id}/release", release_fault, "Let held requests continue", {"count": "integer"}),
    Route("GET", "/requests", list_requests, "The last requests and responses", query=("api", "limit")),
    Route("DELETE", "/requests", clear_requests, "Forget the requests so far"),
    Route(
        "POST", "/requests/wait", wait_for_request, "Wait for a request that meets conditions",
        None, ("api",), waits=True,
    ),
    Route("GET", "/topics", list_topics, "All topics"),
    Route(
        "POST", "/topics", create_topic, "Create a topic",
        {"name": "string", "partitions": "integer", "configs": "object"}, ("name",),
    ),
    Route("GET", "/topics/{name}", find_topic, "A topic"),
    Route("DELETE", "/topics/{name}", delete_topic, "Delete a topic"),
    Route("GET", "/groups/{group}", show_group, "The state and the members of a group"),
    Route(
        "POST", "/groups/{group}/wait", wait_for_group, "Wait until it is stable",
        {"members": "integer", **WAIT}, waits=True,
    ),
    Route("POST", "/clock/advance", advance, "Advance the clock of all nodes", {"ms": "integer"}, ("ms",)),
    Route("POST", "/reset", reset, "Remove topics, groups, users and faults; take the clock back"),
    Route("POST", "/nodes/{node}/stop", stop_node, "Stop a node of a cluster"),
    Route("POST", "/nodes/{node}/crash", crash_node, "Kill a node; the cluster learns of it when its session ends"),
    Route("POST", "/nodes/{node}/start", start_node, "Start a node that has stopped or crashed"),
    Route(
        "POST", "/leaders", move_leader, "Move the leader of a partition to another node",
        {"topic": "string", "partition": "integer", "to": "integer"}, ("topic", "partition"),
    ),
    Route(
        "POST", "/coordinators", move_coordinator, "Move the coordinator of a group or transactional id",
        {"name": "string", "to": "integer"}, ("name",),
    ),
)  # fmt: skip
"""All routes but /openapi.json."""

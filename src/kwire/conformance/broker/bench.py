"""What a check works with: connections, topics and names of its own, and whatever removes them again.

A Session is the run against one cluster; a Bench is one check's part of it. Every name begins with the session's
prefix, and only names with it are ever deleted.
"""

from __future__ import annotations

import dataclasses
import re
import socket
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from kwire.client.broker_connection import BrokerConnection
from kwire.client.settings import ClientSettings
from kwire.client.tls import wrap
from kwire.conformance.broker.connection import Deadlines, RawConnection
from kwire.conformance.broker.requests import error_name, flat, request, response_values
from kwire.conformance.report import Evidence
from kwire.errors import ConnectionFailed, DecodeError, KwireError, Malformed
from kwire.messages import registry
from kwire.messages.base import Message
from kwire.protocol.error_codes import ErrorCode
from kwire.protocol.versions import offered
from kwire.schema import Versions

__all__ = ["PREFIX", "Bench", "NotServed", "Session", "Topic", "User"]

PREFIX = "kwire-conformance"
CONNECT_S = 5.0
DELETED_AT_ONCE = 200
GONE = (0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
POOL = 40
"""Topics that are created in one request, because one request takes as long for one topic as for many."""
PROBE_S = 3.0
"""How long Metadata may take to create the first topic, where CreateTopics is not served."""
READY_S = 15.0
"""How long a topic or a coordinator may take to appear."""
SETTLED_S = 5.0
RETRIABLE = {
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
}

UNAUTHORIZED = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
LOADING = {
    "NOT_COORDINATOR",
    "COORDINATOR_LOAD_IN_PROGRESS",
    "COORDINATOR_NOT_AVAILABLE",
    "NOT_ENOUGH_REPLICAS",  # of Produce, until a transaction's coordinator can be asked about it (KIP-890)
}
PATIENCE_S = 20.0
"""How long a run waits for coordinators in all."""

Address = tuple[str, int]


class NotAllowed(KwireError):
    """The given credentials may not do what the check begins with."""


class NotServed(KwireError):
    """The broker lists the APIs of a check, and cannot do what it needs of them."""


class Topic(NamedTuple):
    """A topic of a check. leader: the address of the leader of partition 0."""

    name: str
    topic_id: uuid.UUID
    leader: Address


class User(NamedTuple):
    """A user with SCRAM credentials."""

    name: str
    password: str
    mechanism: str

    @property
    def principal(self) -> str:
        """The name in ACLs."""
        return f"User:{self.name}"


class Left(NamedTuple):
    """What a run could not delete. unknown: names that the cluster was not asked for, so they may not exist.

    A check may have failed before it created what it had noted.
    """

    names: list[str]
    unknown: list[str]


class Session:
    """A run against one cluster. servers: its addresses, the first that accepts connections is used.

    exchange_s: deadline of a response. settled_s: how long a broker may take to know what the controller has altered.
    with_users: create users although the cluster has others. lacking: what needs.lacks has found out. stranger: the
    user without ACLs, once a check has needed it.
    """

    def __init__(
        self,
        servers: Sequence[Address],
        settings: ClientSettings,
        *,
        exchange_s: float = 10.0,
        settled_s: float = SETTLED_S,
        with_users: bool = False,
    ) -> None:
        self.with_users = with_users
        self.servers, self.settings, self.settled_s = tuple(servers), settings, settled_s
        self.address: Address = self.servers[0]
        self.deadlines = Deadlines(exchange_s)
        self.prefix = f"{PREFIX}-{uuid.uuid4().hex[:6]}"
        self.served: dict[str, Versions] = {}
        self.creates_topics_itself = False
        self.topics: list[str] = []
        self.groups: list[str] = []
        self.removals: dict[str, Callable[[Bench], object]] = {}
        self.pool: list[str] = []
        self.pool_size = POOL
        self.patience_s = PATIENCE_S
        self.controller: Address | None = None
        self.lacking: dict[str, str | None] = {}
        self.stranger: User | None = None

    def open(self, address: Address, evidence: list[Evidence], user: User | None = None) -> RawConnection:
        """Open a connection, with TLS and SASL if the settings have them. user: instead of the settings' one.

        Raises ConnectionFailed, BrokerError.
        """
        settings = self.settings
        if not settings.uses_sasl:
            return self.open_without_login(address, evidence)
        if user is not None:
            of_user: dict[str, Any] = {
                "sasl_username": user.name,
                "sasl_password": user.password,
                "sasl_mechanism": user.mechanism,
            }
            others: dict[str, Any] = {"sasl_tokenauth": False, "token_source": None, "kerberos": None}
            settings = dataclasses.replace(settings, **of_user, **others)
        host, port = address
        return self._raw(BrokerConnection(host, port, settings).detach(), address, evidence)

    def open_without_login(self, address: Address, evidence: list[Evidence]) -> RawConnection:
        """Open a connection, with TLS if the settings have it, on which nothing was sent. Raises ConnectionFailed."""
        try:
            opened = socket.create_connection(address, timeout=min(CONNECT_S, self.deadlines.wait_s()))
            if self.settings.uses_tls:
                opened = wrap(opened, self.settings, address[0])
        except OSError as error:
            where = f"{address[0]}:{address[1]}"
            raise ConnectionFailed(f"cannot connect: {error.strerror or error}", where) from None
        return self._raw(opened, address, evidence)

    def _raw(self, opened: socket.socket, address: Address, evidence: list[Evidence]) -> RawConnection:
        secret = (self.settings.sasl_password or "").encode()
        return RawConnection(opened, f"{address[0]}:{address[1]}", self.deadlines, evidence, secret)

    def learn_versions(self) -> None:
        """Ask which APIs the broker serves. Raises ConnectionFailed, DecodeError, BrokerError."""
        for address in self.servers:
            with suppress(ConnectionFailed):
                self.open(address, []).close()
                self.address = address
                break
        bench = Bench(self, "versions")
        try:
            body = bench.connect().ask(request("ApiVersions", 0), 0)
        finally:
            bench.close()
        names = {key: registry.request(key).__name__.removesuffix("Request") for key in _known_keys()}
        self.served = {names[key]: versions for key, versions in offered(body.api_keys).items() if key in names}
        if "CreateTopics" not in self.served:
            self.creates_topics_itself = self._creates_a_topic()

    def _creates_a_topic(self) -> bool:
        """Return whether Metadata creates a topic, as with auto.create.topics.enable."""
        bench = Bench(self, "probe")
        deadline = time.monotonic() + PROBE_S
        try:
            while time.monotonic() < deadline:
                topics = [{"name": bench.created(bench.name("topic"))}]
                body = bench.ask("Metadata", bench.best("Metadata", 8), topics=topics, allow_auto_topic_creation=True)
                if not body.topics[0].error_code:
                    return True
                time.sleep(0.1)
        except (KwireError, LookupError):
            pass
        finally:
            bench.close()
        return False

    def serves(self, api: str, version: int = -1) -> bool:
        """Return whether the broker lists a version of an API, -1 for any, or creates topics for "Topics"."""
        if api == "Topics":
            return self.creates_topics_itself or "CreateTopics" in self.served
        versions = self.served.get(api)
        return versions is not None and (version == -1 or version in versions)

    def versions_of(self, api: str) -> Versions:
        """Return the versions of an API that the broker lists. Raises ConnectionFailed if it did not list any."""
        if api not in self.served:
            raise ConnectionFailed("API versions are unknown", f"{self.address[0]}:{self.address[1]}")
        return self.served[api]

    def remove(self, what: str, bench: Bench) -> None:
        """Undo what Bench.own has noted; what cannot be undone stays noted."""
        with suppress(Exception):  # of a broker that lies, too
            self.removals[what](bench)
            del self.removals[what]

    def clean_up(self) -> Left:
        """Delete the topics and groups of this session, and what checks could not undo. Returns what is left.

        That includes topics that the broker should have rejected, such as those with invalid names.
        """
        bench, left = Bench(self, "cleanup"), Left([], [])
        try:
            _delete(self.groups, bench.delete_groups, bench.own_groups, left)
            _delete(self.topics, bench.delete_topics, bench.own_topics, left)
        finally:
            for what in reversed(list(self.removals)):
                self.remove(what, bench)
            bench.close()
        left.names.extend(self.removals)
        self.topics.clear()
        self.groups.clear()
        self.removals.clear()
        return left


def _delete(
    noted: Sequence[str], delete: Callable[[Sequence[str]], list[str]], listed: Callable[[], list[str]], left: Left
) -> None:
    """Delete what was noted or is listed; add what cannot be deleted to what is left."""
    names, known = list(noted), None
    with suppress(KwireError):
        known = listed()
        names = [*dict.fromkeys([*noted, *known])]
    kept = names
    with suppress(KwireError):
        kept = delete(names)
    if known is None:
        left.unknown.extend(kept)
    else:
        left.names.extend(name for name in kept if name in known)


def _known_keys() -> list[int]:
    keys = []
    for name in registry.names():
        cls = registry.get(name) if name.endswith("Request") else None
        if cls is not None and cls.API_KEY is not None:
            keys.append(cls.API_KEY)
    return keys


class Bench:
    """One check's view of the cluster."""

    def __init__(self, session: Session, check_id: str) -> None:
        self.session = session
        self.evidence: list[Evidence] = []
        self._prefix = f"{session.prefix}-{check_id.lower()}-"
        self._connections: list[RawConnection] = []
        self._by_address: dict[tuple[Address, User | None], RawConnection] = {}
        self._at_end: list[Callable[[], object]] = []
        self._owned: list[str] = []

    def close(self) -> None:
        """Undo what the check has left, and close its connections."""
        for action in reversed(self._at_end):
            with suppress(Exception):
                action()
        for what in reversed(self._owned):
            self.session.remove(what, self)
        for connection in self._connections:
            connection.close()

    def at_end(self, action: Callable[[], object]) -> None:
        """Call action when the check has ended, however it ended; its errors are ignored."""
        self._at_end.append(action)

    def own(self, what: str, remove: Callable[[Bench], object]) -> None:
        """Undo something when the check has ended, and again at the end of the run if that failed.

        what: its name in the report, if it cannot be undone. remove: gets the bench to use; raises if it failed.
        """
        if what not in self.session.removals:
            self.session.removals[what] = remove
            self._owned.append(what)

    def keep(self) -> None:
        """Leave what `own` has noted for the end of the run."""
        self._owned.clear()

    # Connections and requests

    def connect(
        self, address: Address | None = None, user: User | None = None, *, logs_in: bool = True
    ) -> RawConnection:
        """Open a new connection, by default to the broker under test. logs_in: with SASL, if the run uses it."""
        at = address or self.session.address
        if logs_in:
            connection = self.session.open(at, self.evidence, user)
        else:
            connection = self.session.open_without_login(at, self.evidence)
        self._connections.append(connection)
        return connection

    def connection(self, address: Address | None = None, user: User | None = None) -> RawConnection:
        """Return the check's one connection to an address, of a user."""
        key = address or self.session.address, user
        if key not in self._by_address:
            self._by_address[key] = self.connect(*key)
        return self._by_address[key]

    def best(self, api: str, at_most: int | None = None) -> int:
        """Return the highest version of an API that the broker lists and kwire knows."""
        known = registry.get(f"{api}Request").SPEC.stable
        highest = known.intersect(self.session.served.get(api, known)).highest
        return highest if at_most is None else min(highest, at_most)

    def ask(self, api: str, version: int | None = None, at: Address | None = None, **values: Any) -> Any:
        """Send a request and return the body of its response. version: by default the highest."""
        return self.ask_as(None, api, version, at, **values)

    def ask_as(
        self, user: User | None, api: str, version: int | None = None, at: Address | None = None, **values: Any
    ) -> Any:
        """Do as `ask`, logged in as another user; None for the one of the settings."""
        chosen = self.best(api) if version is None else version
        return self.connection(at, user).ask(request(api, chosen, **values), chosen)

    def values(self, body: Message, version: int, *drop: str) -> dict[str, Any]:
        """Return a response as values that can be compared: see response_values. Names are without the prefix."""
        values = response_values(body, version, frozenset(drop))
        result = self._without_prefix(values)
        assert isinstance(result, dict)
        return result

    def _without_prefix(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._without_prefix(each) for key, each in value.items()}
        if isinstance(value, list):
            return [self._without_prefix(each) for each in value]
        if not isinstance(value, str):
            return value
        return re.sub(rf"{self.session.prefix}-\d+-", "~", value.replace(self._prefix, "~"))

    # Names and topics

    def name(self, suffix: str) -> str:
        """Return a name of this check's own."""
        return self._prefix + suffix

    def group(self, suffix: str = "group") -> str:
        """Return the id of a group that is deleted at the end of the run."""
        name = self.name(suffix)
        if name not in self.session.groups:
            self.session.groups.append(name)
        return name

    def created(self, topic: str) -> str:
        """Note a topic that the check creates, to be deleted at the end of the run."""
        if topic not in self.session.topics:
            self.session.topics.append(topic)
        return topic

    def topic(self, suffix: str = "topic", *, partitions: int = 1, **configs: str) -> Topic:
        """Return a new topic whose leaders serve. configs: with underscores for dots. Raises ConnectionFailed."""
        if partitions == 1 and not configs:
            try:
                return self.wait_for_topic(self._pooled())
            except ConnectionFailed:
                self.session.pool.clear()  # a broker that died may have lost the other topics too
                raise
        name = self.created(self.name(suffix))
        settings = [{"name": key.replace("_", "."), "value": value} for key, value in configs.items()]
        self._create([{"name": name, "num_partitions": partitions, "replication_factor": 1, "configs": settings}])
        return self.wait_for_topic(name, partitions)

    def _pooled(self) -> str:
        """Return the name of a topic with one partition that no check has used."""
        pool = self.session.pool
        if not pool:
            first = len(self.session.topics)
            names = [f"{self.session.prefix}-{first + i}-topic" for i in range(self.session.pool_size)]
            self.session.topics += names
            self._create([{"name": name, "num_partitions": 1, "replication_factor": 1} for name in names])
            pool += reversed(names)
        return pool.pop()

    def _create(self, topics: list[dict[str, Any]]) -> None:
        if self.session.creates_topics_itself:
            if any(each["num_partitions"] != 1 or each.get("configs") for each in topics):
                raise NotServed("the broker does not list CreateTopics, and its own topics have other settings")
            names = [{"name": each["name"]} for each in topics]
            self.ask("Metadata", self.best("Metadata", 8), topics=names, allow_auto_topic_creation=True)
            return
        body = self.ask("CreateTopics", at=self.controller(), topics=topics, timeout_ms=10_000)
        for each in body.topics:
            if each.error_code in UNAUTHORIZED:
                raise NotAllowed("the given credentials may not create topics: CREATE on the cluster is needed")
            if each.error_code not in (0, ErrorCode.TOPIC_ALREADY_EXISTS):
                raise ConnectionFailed(f"a topic cannot be created: {error_name(each.error_code)}", each.name)

    def wait_for_topic(self, name: str, partitions: int = 1) -> Topic:
        """Return a topic when all of its partitions have leaders."""
        deadline = time.monotonic() + READY_S
        while True:
            body = self._described(name)
            topic = body.topics[0]
            leaders = [each.leader_id for each in topic.partitions if not each.error_code]
            is_whole = len(leaders) == partitions or (self.session.creates_topics_itself and len(leaders) > partitions)
            if not topic.error_code and is_whole and min(leaders) >= 0:
                addresses = {each.node_id: (each.host, each.port) for each in body.brokers}
                if topic.partitions[0].leader_id not in addresses:
                    raise Malformed("leader that is not among the brokers of the response", 0)
                leader = next(each.leader_id for each in topic.partitions if each.partition_index == 0)
                found = Topic(name, topic.topic_id, addresses[leader])
                if self._leads(found, partitions):
                    return found
            if time.monotonic() > deadline:
                raise ConnectionFailed(f"no leader after {READY_S:.0f} s", name)
            time.sleep(0.02)

    def _described(self, name: str) -> Any:
        asked: dict[str, Any] = {"topics": [{"name": name}], "allow_auto_topic_creation": False}
        try:
            return self.ask("Metadata", self.best("Metadata", 12), **asked)
        except DecodeError:
            if not self.session.creates_topics_itself:
                raise
            return self.ask("Metadata", self.best("Metadata", 8), **asked)  # a mock, wrong in the flexible versions

    def _leads(self, topic: Topic, partitions: int) -> bool:
        """Return whether the leader serves: with KRaft, a broker learns that later than metadata tells clients."""
        asked = [{"partition_index": i, "timestamp": -1} for i in range(partitions)]
        topics = [{"name": topic.name, "partitions": asked}]
        body = self.ask("ListOffsets", self.best("ListOffsets", 5), at=topic.leader, replica_id=-1, topics=topics)
        return not any(each.error_code for each in body.topics[0].partitions)

    def controller(self) -> Address:
        """Return the address of the controller: with ZooKeeper, the only broker that makes changes."""
        if self.session.controller is None:
            body = self.ask("Metadata", self.best("Metadata", 8), topics=[])
            addresses = {each.node_id: (each.host, each.port) for each in body.brokers}
            self.session.controller = addresses.get(body.controller_id, self.session.address)
        return self.session.controller

    def coordinator(self, key: str, key_type: int = 0) -> Address:
        """Return the address of the coordinator of a group (0) or transactional id (1). Raises ConnectionFailed."""
        version = self.best("FindCoordinator", 3)
        deadline = time.monotonic() + READY_S
        while True:
            body = self.ask("FindCoordinator", version, key=key, key_type=key_type)
            if not body.error_code:
                return body.host, body.port
            if body.error_code in UNAUTHORIZED:
                raise NotAllowed(f"the given credentials may not describe {'group' if not key_type else 'id'} {key}")
            if body.error_code not in RETRIABLE or time.monotonic() > deadline:
                raise ConnectionFailed(f"no coordinator: {error_name(body.error_code)}", key)
            time.sleep(0.05)

    def loaded(self, attempt: Callable[[], Any]) -> Any:
        """Repeat attempt while its values have an error of a coordinator that is not loaded yet."""
        while True:
            values = attempt()
            if LOADING.isdisjoint(map(str, flat(values).values())) or self.session.patience_s <= 0:
                return values
            self.session.patience_s -= 0.1
            time.sleep(0.1)

    def until(self, attempt: Callable[[], Any], *codes: int, wait_s: float = READY_S) -> Any:
        """Repeat attempt while the error code of its response is one of these, RETRIABLE by default."""
        deadline = time.monotonic() + wait_s
        while True:
            body = attempt()
            if body.error_code not in (codes or RETRIABLE) or time.monotonic() > deadline:
                return body
            time.sleep(0.05)

    def settled(self, attempt: Callable[[], Any], expected: Any) -> Any:
        """Repeat attempt until it returns what is expected, or the time is over; returns its last result."""
        deadline = time.monotonic() + self.session.settled_s
        while (found := attempt()) != expected and time.monotonic() < deadline:
            time.sleep(0.05)
        return found

    # Removal

    def own_topics(self) -> list[str]:
        """Return the topics of the cluster with the session's prefix."""
        body = self.ask("Metadata", self.best("Metadata", 8), topics=None)
        return [each.name for each in body.topics if (each.name or "").startswith(self.session.prefix)]

    def own_groups(self) -> list[str]:
        """Return the groups of the cluster with the session's prefix."""
        brokers = self.ask("Metadata", self.best("Metadata", 8), topics=[]).brokers
        bodies = [self.ask("ListGroups", at=(each.host, each.port)) for each in brokers]
        names = {group.group_id for body in bodies for group in body.groups}
        return sorted(name for name in names if name.startswith(self.session.prefix))

    def delete_topics(self, names: Sequence[str]) -> list[str]:
        """Delete topics with the session's prefix. Returns those that are left."""
        if not self.session.serves("DeleteTopics"):
            return list(names)
        own = [name for name in names if name.startswith(self.session.prefix)]
        gone: set[str] = set()
        version = self.best("DeleteTopics", 5)
        for start in range(0, len(own), DELETED_AT_ONCE):
            part = own[start : start + DELETED_AT_ONCE]
            body = self.ask("DeleteTopics", version, at=self.controller(), topic_names=part, timeout_ms=10_000)
            gone |= {each.name for each in body.responses if each.error_code in GONE}
        return [name for name in own if name not in gone]

    def delete_groups(self, names: Sequence[str]) -> list[str]:
        """Delete groups with the session's prefix. Returns those that are left."""
        if not self.session.serves("DeleteGroups"):
            return list(names)
        left = []
        for name in names:
            if not name.startswith(self.session.prefix):
                continue
            body = self.ask("DeleteGroups", groups_names=[name], at=self.coordinator(name))
            code = body.results[0].error_code
            if code not in (0, ErrorCode.GROUP_ID_NOT_FOUND):
                left.append(name)
        return left

"""Quotas of clients: how they are altered, validated only, found and removed, and that who exceeds one is throttled."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Mapping
from typing import Any

from kwire.conformance.broker.bench import Bench, Topic, User
from kwire.conformance.broker.chapters.acls import allow
from kwire.conformance.broker.chapters.data import batch, fetch_fields
from kwire.conformance.broker.checks import Chapter
from kwire.conformance.broker.connection import Closed, RawConnection
from kwire.conformance.broker.requests import error_name, request
from kwire.conformance.broker.users import new_user
from kwire.errors import BrokerError
from kwire.internal_topics.enums import Operation
from kwire.protocol.error_codes import ErrorCode

__all__ = ["chapter"]

chapter = Chapter("Quotas")
USES = {"AlterClientQuotas": 0, "DescribeClientQuotas": 0}
EXACT, DEFAULT, ANY = range(3)
PRODUCER, CONSUMER = "producer_byte_rate", "consumer_byte_rate"
RATE, SENT_BYTES = 1024.0, 40_000

Entity = dict[str, str | None]


def _alter(bench: Bench, entity: Entity, values: Mapping[str, float | None], *, validate_only: bool = False) -> str:
    """Alter quotas, None removes one; they are removed at the end. Returns the error."""
    if not validate_only:
        _own(bench, entity, values)
    entry = {
        "entity": [{"entity_type": kind, "entity_name": name} for kind, name in entity.items()],
        "ops": [{"key": key, "value": value or 0.0, "remove": value is None} for key, value in values.items()],
    }
    body = bench.ask("AlterClientQuotas", at=bench.controller(), entries=[entry], validate_only=validate_only)
    return error_name(body.entries[0].error_code)


def _own(bench: Bench, entity: Entity, values: Mapping[str, object]) -> None:
    def remove(at: Bench) -> None:
        error = _alter(at, entity, dict.fromkeys(values), validate_only=False)
        if error != "NONE":
            raise BrokerError(what, ErrorCode[error])

    what = f"quotas {', '.join(values)} of {', '.join(f'{kind} {name}' for kind, name in entity.items())}"
    bench.own(what, remove)


def _attempts(bench: Bench) -> Iterator[int]:
    """Number attempts, as long as a broker may take until a quota counts."""
    deadline = time.monotonic() + bench.session.settled_s
    for number in itertools.count():
        yield number
        if time.monotonic() > deadline:
            return
        time.sleep(0.05)


def _described(bench: Bench, entity: Entity, *, strict: bool = True) -> dict[str, float]:
    """Return the quotas of the entities that match."""
    components = [{"entity_type": kind, "match_type": EXACT, "match": name} for kind, name in entity.items()]
    body = bench.ask("DescribeClientQuotas", components=components, strict=strict)
    return {each.key: each.value for entry in body.entries or () for each in entry.values}


@chapter.check("QUOTA-001", "KIP-546", uses=USES)
def altered(bench: Bench) -> Any:
    """Quotas of a client id are altered and described.

    Set a producer_byte_rate and a consumer_byte_rate for a client id, and describe it.
    Both are returned, and no others.
    """
    entity: Entity = {"client-id": bench.name("client")}
    values: dict[str, float | None] = {PRODUCER: 1_000_000.0, CONSUMER: 2_000_000.0}
    error = _alter(bench, entity, values)
    return {"error": error, "quotas": bench.settled(lambda: _described(bench, entity), values)}


@chapter.check("QUOTA-002", "KIP-546", uses=USES)
def validated_only(bench: Bench) -> Any:
    """AlterClientQuotas with validate_only sets nothing.

    Validate a quota, then set another one, and describe the client id.
    Only the second is returned.
    """
    entity: Entity = {"client-id": bench.name("client")}
    errors = [_alter(bench, entity, {PRODUCER: 1_000_000.0}, validate_only=True)]
    errors.append(_alter(bench, entity, {CONSUMER: 2_000_000.0}))
    quotas = bench.settled(lambda: _described(bench, entity), {CONSUMER: 2_000_000.0})
    return {"errors": errors, "quotas": quotas}


@chapter.check("QUOTA-003", "KIP-546", uses=USES)
def removed(bench: Bench) -> Any:
    """A removed quota is gone, and the others stay.

    Set two quotas, remove one, then the other, and describe the client id after each.
    """
    entity: Entity = {"client-id": bench.name("client")}
    _alter(bench, entity, {PRODUCER: 1_000_000.0, CONSUMER: 2_000_000.0})
    first = _alter(bench, entity, {PRODUCER: None})
    left = bench.settled(lambda: _described(bench, entity), {CONSUMER: 2_000_000.0})
    second = _alter(bench, entity, {CONSUMER: None})
    return {"errors": [first, second], "left": left, "then": bench.settled(lambda: _described(bench, entity), {})}


@chapter.check("QUOTA-004", "KIP-546: DescribeClientQuotasRequest.Strict", uses=USES)
def strict(bench: Bench) -> Any:
    """A strict description leaves out entities with more components.

    Set a quota for a user and a client id together, and describe the client id, strict and not.
    Only the second finds it.
    """
    client = bench.name("client")
    _alter(bench, {"user": bench.name("user"), "client-id": client}, {PRODUCER: 1_000_000.0})
    open_ = bench.settled(lambda: _described(bench, {"client-id": client}, strict=False), {PRODUCER: 1_000_000.0})
    return {"not strict": open_, "strict": _described(bench, {"client-id": client})}


@chapter.check("QUOTA-005", "KIP-546; ClientQuotaControlManager", uses=USES)
def wrong(bench: Bench) -> Any:
    """Alterations that make no sense are refused.

    Validate an unknown type of entity, an empty name, no entity, a negative rate, a rate with a fraction, an unknown
    quota, the same quota twice, a quota of bytes for an IP address, and an IP address that is not one.
    The errors are those of the release.
    """
    client: Entity = {"client-id": bench.name("client")}
    cases: list[tuple[Entity, dict[str, float | None]]] = [
        ({"group": "g"}, {PRODUCER: 1000.0}),
        ({"client-id": ""}, {PRODUCER: 1000.0}),
        ({}, {PRODUCER: 1000.0}),
        (client, {PRODUCER: -1.0}),
        (client, {PRODUCER: 1000.5}),
        (client, {"no_such_quota": 1.0}),
        ({"ip": "192.0.2.1"}, {PRODUCER: 1000.0}),
        ({"ip": "not an address"}, {"connection_creation_rate": 10.0}),
    ]
    return {"errors": [_alter(bench, entity, values, validate_only=True) for entity, values in cases]}


@chapter.check("QUOTA-009", "KIP-546: DescribeClientQuotasRequest.ComponentData", uses=USES)
def match_types(bench: Bench) -> Any:
    """A filter finds a name, the default of a type, or every entity of a type.

    Set a quota for a user with a client id, and for this user with the default client id; describe the user with the
    client id, with the default, and with any.
    """
    user, client = bench.name("user"), bench.name("client")
    _alter(bench, {"user": user, "client-id": client}, {PRODUCER: 1_000_000.0})
    _alter(bench, {"user": user, "client-id": None}, {PRODUCER: 2_000_000.0})
    by_user = {"entity_type": "user", "match_type": EXACT, "match": user}

    def found(match_type: int, match: str | None) -> list[float]:
        components = [by_user, {"entity_type": "client-id", "match_type": match_type, "match": match}]
        body = bench.ask("DescribeClientQuotas", components=components, strict=True)
        return sorted(each.value for entry in body.entries or () for each in entry.values)

    both = [1_000_000.0, 2_000_000.0]
    any_ = bench.settled(lambda: found(ANY, None), both)
    return {"any": any_, "exact": found(EXACT, client), "default": found(DEFAULT, None)}


@chapter.check("QUOTA-010", "KIP-546; ClientQuotasImage", uses=USES)
def wrong_filters(bench: Bench) -> Any:
    """Filters that make no sense are refused.

    Describe an unknown type of entity, an empty type, a type twice, an unknown type of match, and a user with an IP
    address.
    The errors are those of the release.
    """
    client = {"entity_type": "client-id", "match_type": EXACT, "match": bench.name("client")}
    cases = (
        [{**client, "entity_type": "group"}],
        [{**client, "entity_type": ""}],
        [client, client],
        [{**client, "match_type": 9}],
        [{**client, "entity_type": "user"}, {**client, "entity_type": "ip", "match": "192.0.2.1"}],
    )
    found = []
    for components in cases:
        connection, version = bench.connect(), bench.best("DescribeClientQuotas")
        try:
            body = connection.ask(request("DescribeClientQuotas", version, components=components, strict=True), version)
            found.append(error_name(body.error_code))
        except Closed:
            found.append("closed")
    return {"errors": found}


# Throttle times


def _produce(
    bench: Bench, topic: Topic, client_id: str, size: int, user: User | None = None
) -> tuple[RawConnection, str, int]:
    """Produce a record on a new connection. Returns the connection, the error and the throttle time."""
    version = bench.best("Produce", 9)
    data = [{"name": topic.name, "partition_data": [{"index": 0, "records": batch(b"v" * size)}]}]
    connection = bench.connect(topic.leader, user)
    connection.send(
        request("Produce", version, acks=-1, timeout_ms=5000, topic_data=data), version, client_id=client_id
    )
    answer = connection.receive()
    return connection, error_name(answer.responses[0].partition_responses[0].error_code), answer.throttle_time_ms


def _throttled(bench: Bench, topic: Topic, client_id: str, user: User | None = None) -> bool:
    """Produce until there is a throttle time. Returns whether there was one, and no error."""
    for _ in _attempts(bench):
        connection, error, throttle_time_ms = _produce(bench, topic, client_id, SENT_BYTES, user)
        connection.close()
        if error != "NONE":
            raise BrokerError("Produce", ErrorCode[error])
        if throttle_time_ms > 0:
            return True
    return False


@chapter.check(
    "QUOTA-006", "KIP-13, KIP-219", uses={**USES, "Topics": -1, "Produce": 3}, needs=("no producer_byte_rate of users",)
)
def throttled(bench: Bench) -> Any:
    """A producer above its quota gets a throttle time, and others do not.

    Set a producer_byte_rate of 1024 for a client id, and produce some 40,000 bytes with it each on a new
    connection, until there is a throttle time; then with another client id.
    The first has a throttle time above 0 in the end, its records are written, and the second has none.
    """
    topic, client = bench.topic(), bench.name("client")
    _alter(bench, {"client-id": client}, {PRODUCER: RATE})
    found = _throttled(bench, topic, client)
    return {"throttled": found, "others": _produce(bench, topic, bench.name("other"), SENT_BYTES)[2] > 0}


@chapter.check(
    "QUOTA-007", "KIP-219", uses={**USES, "Topics": -1, "Produce": 3}, needs=("no producer_byte_rate of users",)
)
def muted(bench: Bench) -> Any:
    """After a throttle time, the next request on the connection has to wait.

    Set a producer_byte_rate of 10,000 for a client id, and produce 110,000 bytes until there is a throttle time. Send
    ApiVersions on the same connection.
    The response to Produce comes immediately; the broker is silent for most of the throttle time, or of a second.
    """
    topic, client = bench.topic(), bench.name("client")
    _alter(bench, {"client-id": client}, {PRODUCER: 10_000.0})
    for _ in _attempts(bench):
        connection, _, throttle_time_ms = _produce(bench, topic, client, 110_000)
        if throttle_time_ms > 0:
            connection.send(request("ApiVersions", 0), 0, client_id=client)
            return {"silent": connection.is_silent(0.7 * min(1.0, throttle_time_ms / 1000))}
    return {"silent": False}


@chapter.check(
    "QUOTA-008",
    "KIP-13, KIP-219",
    uses={**USES, "Topics": -1, "Produce": 3, "Fetch": 4},
    needs=("no consumer_byte_rate of users",),
)
def consumer(bench: Bench) -> Any:
    """A consumer above its quota gets a throttle time, and no records with it.

    Set a consumer_byte_rate of 1024 for a client id, and fetch some 40,000 bytes with it until there is a throttle
    time.
    """
    topic, client = bench.topic(), bench.name("client")
    _alter(bench, {"client-id": client}, {CONSUMER: RATE})
    _produce(bench, topic, bench.name("other"), SENT_BYTES)
    version = bench.best("Fetch", 12)
    for _ in _attempts(bench):
        connection = bench.connect(topic.leader)
        body = request("Fetch", version, **fetch_fields(topic, replica_id=-1))
        connection.send(body, version, client_id=client)
        answer = connection.receive()
        connection.close()
        if answer.throttle_time_ms > 0:
            parts = [part for each in answer.responses for part in each.partitions]
            return {
                "errors": [error_name(each.error_code) for each in parts],
                "throttled": True,
                "records": any(each.records for each in parts),
            }
    return {"throttled": False}


@chapter.check(
    "QUOTA-011",
    "KIP-599",
    uses={**USES, "CreateTopics": 6, "Metadata": 4},
    needs=("no controller_mutation_rate of users",),
)
def mutations(bench: Bench) -> Any:
    """A client above its quota of changes cannot create topics.

    Set a controller_mutation_rate of 0.1 for a client id, and create topics of 5 partitions with it, a request each,
    until there is an error.
    The error is THROTTLING_QUOTA_EXCEEDED with a throttle time, and that topic does not exist; another client can
    create it.
    """
    client = bench.name("client")
    _alter(bench, {"client-id": client}, {"controller_mutation_rate": 0.1})
    bench.settled(lambda: len(_described(bench, {"client-id": client})), 1)
    version = bench.best("CreateTopics")

    def create(name: str, client_id: str) -> tuple[str, bool]:
        topics = [{"name": bench.created(name), "num_partitions": 5, "replication_factor": 1}]
        connection = bench.connect(bench.controller())
        body = request("CreateTopics", version, topics=topics, timeout_ms=5000)
        connection.send(body, version, client_id=client_id)
        answer = connection.receive()
        connection.close()
        return error_name(answer.topics[0].error_code), answer.throttle_time_ms > 0

    for number in _attempts(bench):
        name = bench.name(f"topic-{number}")
        error, is_throttled = create(name, client)
        if error != "NONE":
            return {"error": error, "throttled": is_throttled, "others": create(name, bench.name("other"))[0]}
    return {"error": "NONE"}


@chapter.check("QUOTA-012", "KIP-124", uses=USES, needs=("no request_percentage of users",))
def request_time(bench: Bench) -> Any:
    """A client above its quota of request time gets a throttle time.

    Set a request_percentage of 0.001 for a client id, and send Metadata for all topics with it until there is a
    throttle time.
    """
    client = bench.name("client")
    _alter(bench, {"client-id": client}, {"request_percentage": 0.001})
    version = bench.best("Metadata", 12)
    for _ in _attempts(bench):
        connection = bench.connect()
        connection.send(request("Metadata", version, topics=None), version, client_id=client)
        answer = connection.receive()
        connection.close()
        if answer.throttle_time_ms > 0:
            return {"throttled": True}
    return {"throttled": False}


@chapter.check(
    "QUOTA-020",
    "KIP-55",
    uses={**USES, "Topics": -1, "Produce": 3, "CreateAcls": 1, "AlterUserScramCredentials": 0},
    needs=("own users", "authorizer"),
)
def users(bench: Bench) -> Any:
    """A quota of a user is about all of its clients, and not about other users.

    Set a producer_byte_rate of 1024 for a user, and produce as this user with two client ids, and as another one.
    """
    topic, user = bench.topic(), new_user(bench)
    allow(bench, user, topic.name, Operation.WRITE)
    _alter(bench, {"user": user.name}, {PRODUCER: RATE})
    first = _throttled(bench, topic, bench.name("a"), user)
    second = _produce(bench, topic, bench.name("b"), 1000, user)[2] > 0
    return {"throttled": [first, second], "others": _produce(bench, topic, bench.name("a"), 1000)[2] > 0}


@chapter.check(
    "QUOTA-021",
    "KIP-55",
    uses={**USES, "Topics": -1, "Produce": 3, "CreateAcls": 1, "AlterUserScramCredentials": 0},
    needs=("own users", "authorizer"),
)
def precedence(bench: Bench) -> Any:
    """A quota of a user with a client id comes before that of the user.

    Set a producer_byte_rate of 1024 for a user, and of 1,000,000,000 for this user with a client id. Produce with
    another client id until there is a throttle time, then with this one.
    """
    topic, user, client = bench.topic(), new_user(bench), bench.name("client")
    allow(bench, user, topic.name, Operation.WRITE)
    _alter(bench, {"user": user.name, "client-id": client}, {PRODUCER: 1e9})
    _alter(bench, {"user": user.name}, {PRODUCER: RATE})
    other = _throttled(bench, topic, bench.name("other"), user)
    return {"other": other, "this": _produce(bench, topic, client, SENT_BYTES, user)[2] > 0}

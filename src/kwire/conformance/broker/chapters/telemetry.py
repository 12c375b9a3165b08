"""Telemetry of clients: subscriptions that match them, and what they push (KIP-714)."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from kwire.conformance.broker.bench import Bench
from kwire.conformance.broker.checks import Allowed, Chapter
from kwire.conformance.broker.connection import RawConnection
from kwire.conformance.broker.requests import error_name, request
from kwire.errors import BrokerError
from kwire.internal_topics.enums import ConfigResource
from kwire.messages.base import ZERO_UUID
from kwire.protocol.error_codes import ErrorCode

__all__ = ["chapter"]

chapter = Chapter("Telemetry")
GET, PUSH = {"GetTelemetrySubscriptions": 0}, {"GetTelemetrySubscriptions": 0, "PushTelemetry": 0}
SUBSCRIBED = {**PUSH, "IncrementalAlterConfigs": 1}
SOURCE, TELEMETRY = "KIP-714; ClientMetricsManager", ("telemetry",)
SET, DELETE = 0, 1
INTERVAL_MS = 200_000
"""Of the checks' subscriptions: longer than a run, and less than the default."""
METRICS = "org.apache.kafka.producer.,org.apache.kafka.consumer."
SOFTWARE = {"client_software_name": "kwire", "client_software_version": "1.2.3"}
OWN = "the cluster has other subscriptions that match every client"
OF_THE_CLUSTER = (Allowed(path="interval", reason=OWN), Allowed(path="metrics*", reason=OWN))


def _configure(bench: Bench, name: str, values: Mapping[str, str], *, validate_only: bool = False) -> str:
    """Set configs of a subscription, which is deleted at the end. Returns the error."""
    if not validate_only:
        bench.own(f"client metrics {name}", lambda at: _delete(at, name))
    return _alter(
        bench, name, [{"name": key, "config_operation": SET, "value": values[key]} for key in values], validate_only
    )


def _alter(bench: Bench, name: str, configs: list[dict[str, Any]], validate_only: bool = False) -> str:
    resource = {"resource_type": ConfigResource.CLIENT_METRICS, "resource_name": name, "configs": configs}
    fields: dict[str, Any] = {"resources": [resource], "validate_only": validate_only}
    body = bench.ask("IncrementalAlterConfigs", at=bench.controller(), **fields)
    return error_name(body.responses[0].error_code)


def _delete(bench: Bench, name: str) -> None:
    names = ("interval.ms", "match", "metrics")
    error = _alter(bench, name, [{"name": each, "config_operation": DELETE, "value": None} for each in names])
    if error != "NONE":
        raise BrokerError(name, ErrorCode[error])


def _get(
    bench: Bench, client_id: str, instance_id: uuid.UUID = ZERO_UUID, connection: RawConnection | None = None
) -> Any:
    """Send GetTelemetrySubscriptions. connection: by default the check's own."""
    used = connection or bench.connection()
    used.send(request("GetTelemetrySubscriptions", 0, client_instance_id=instance_id), 0, client_id=client_id)
    return used.receive()


def _push(bench: Bench, subscription: Any, **fields: Any) -> str:
    """Push to a subscription that was gotten. fields: of the request. Returns the error."""
    values = {
        "client_instance_id": subscription.client_instance_id,
        "subscription_id": subscription.subscription_id,
        "metrics": b"",
        **fields,
    }
    return error_name(bench.ask("PushTelemetry", 0, **values).error_code)


def _subscribed(bench: Bench, client_id: str, **values: str) -> Any:
    """Subscribe a client id to metrics, and return its response to GetTelemetrySubscriptions when it knows.

    values: configs, with underscores for dots.
    """
    configs = {"interval.ms": str(INTERVAL_MS), "match": f"client_id={client_id}", "metrics": METRICS}
    configs |= {key.replace("_", "."): value for key, value in values.items()}
    error = _configure(bench, bench.name("subscription"), configs)
    if error != "NONE":
        raise BrokerError("IncrementalAlterConfigs", ErrorCode[error])
    found: list[Any] = []

    def is_known() -> bool:
        found.append(_get(bench, client_id))
        return bool(found[-1].requested_metrics)

    bench.settled(is_known, True)
    return found[-1]


# Subscriptions


@chapter.check("TELEMETRY-001", SOURCE, uses=GET, needs=TELEMETRY, since="3.7", allowed=OF_THE_CLUSTER)
def without_subscription(bench: Bench) -> Any:
    """A client without an instance id gets one; without a subscription, it is asked for no metrics.

    Send GetTelemetrySubscriptions with the instance id zero.
    There is an instance id, no metric, the default interval, the codecs in order of preference, and delta temporality.
    """
    body = _get(bench, bench.name("client"))
    return {
        "error": error_name(body.error_code),
        "has an instance id": body.client_instance_id != ZERO_UUID,
        "codecs": list(body.accepted_compression_types),
        "interval": body.push_interval_ms,
        "delta": body.delta_temporality,
        "metrics": list(body.requested_metrics),
    }


@chapter.check("TELEMETRY-002", SOURCE, uses=GET, needs=TELEMETRY, since="3.7")
def instance_id(bench: Bench) -> Any:
    """A client keeps its instance id, and others get another one.

    Send GetTelemetrySubscriptions with an id, and twice with the instance id zero.
    """
    mine = uuid.uuid4()
    first = _get(bench, bench.name("client"), mine)
    others = {_get(bench, bench.name("client")).client_instance_id for _ in range(2)}
    return {"same": first.client_instance_id == mine, "others": len(others - {mine})}


@chapter.check("TELEMETRY-003", SOURCE, uses=SUBSCRIBED, needs=TELEMETRY, since="3.7")
def matching(bench: Bench) -> Any:
    """A subscription that matches a client id is for that client only.

    Subscribe a client id to two metrics, and ask for the subscriptions of this client and of another one.
    """
    client = bench.name("client")
    body = _subscribed(bench, client)
    other = _get(bench, bench.name("other"))
    return {
        "interval": body.push_interval_ms,
        "metrics": sorted(body.requested_metrics),
        "other": sorted(set(METRICS.split(",")) & set(other.requested_metrics)),
    }


@chapter.check("TELEMETRY-004", SOURCE, uses={**SUBSCRIBED, "ApiVersions": 3}, needs=TELEMETRY, since="3.7")
def software(bench: Bench) -> Any:
    """Subscriptions match the software that a client has named in ApiVersions, and all patterns have to match.

    Subscribe a client id with the software version 1.2.3 to metrics. Ask as such a client, and with version 9.
    """
    client = bench.name("client")
    match = f"client_id={client},client_software_name=kwire,client_software_version=1[.]2[.].*"
    error = _configure(bench, bench.name("subscription"), {"metrics": METRICS, "match": match})

    def metrics(version: str) -> int:
        connection = bench.connect()
        named = {**SOFTWARE, "client_software_version": version}
        connection.ask(request("ApiVersions", 3, **named), 3)
        found = len(_get(bench, client, connection=connection).requested_metrics)
        connection.close()
        return found

    return {"error": error, "matches": bench.settled(lambda: metrics("1.2.3"), 2), "other": metrics("9")}


@chapter.check("TELEMETRY-005", SOURCE, uses=SUBSCRIBED, needs=TELEMETRY, since="3.7")
def all_metrics(bench: Bench) -> Any:
    """The metric * stands for all.

    Subscribe a client id to *, and ask for its subscriptions.
    """
    body = _subscribed(bench, bench.name("client"), metrics="*")
    return {"metrics": list(body.requested_metrics)}


@chapter.check("TELEMETRY-006", SOURCE, uses=SUBSCRIBED, needs=TELEMETRY, since="3.7")
def changed(bench: Bench) -> Any:
    """A changed subscription has another id, which the push of a client learns.

    Subscribe a client id, change the metrics, and push with the former subscription id.
    The error is UNKNOWN_SUBSCRIPTION_ID; the same instance has another subscription id then.
    """
    client = bench.name("client")
    body = _subscribed(bench, client)
    error = _configure(bench, bench.name("subscription"), {"metrics": "org.apache.kafka."})
    known = bench.settled(lambda: list(_get(bench, client).requested_metrics), ["org.apache.kafka."])
    pushed = _push(bench, body)
    again = _get(bench, client, body.client_instance_id)
    return {
        "errors": [error, pushed, error_name(again.error_code)],
        "metrics": known,
        "other id": again.subscription_id != body.subscription_id,
    }


@chapter.check("TELEMETRY-007", "KIP-714; ClientMetricsConfigs", uses=SUBSCRIBED, needs=TELEMETRY, since="3.7")
def wrong_configs(bench: Bench) -> Any:
    """Subscriptions that make no sense are refused.

    Validate an interval of 50 ms, one that is not a number, a match of an unknown attribute, a match that is not a
    pattern, and an unknown config.
    The errors are those of the release.
    """
    name = bench.name("subscription")
    wrong = (
        {"interval.ms": "50"},
        {"interval.ms": "x"},
        {"match": "no_such_attribute=a"},
        {"match": "client_id=["},
        {"no.such.config": "1"},
    )
    return {"errors": [_configure(bench, name, each, validate_only=True) for each in wrong]}


@chapter.check(
    "TELEMETRY-008", "KIP-714, KIP-1142", uses={**SUBSCRIBED, "ListConfigResources": 0}, needs=TELEMETRY, since="3.7"
)
def named(bench: Bench) -> Any:
    """Subscriptions are listed as resources with configs, and deleted ones are not.

    Create a subscription, list the names; delete it, and list them again.
    """
    name = bench.name("subscription")
    error = _configure(bench, name, {"metrics": METRICS, "match": f"client_id={bench.name('client')}"})

    def is_listed() -> bool:
        fields: dict[str, Any] = {"resource_types": [ConfigResource.CLIENT_METRICS]}
        return name in {each.resource_name for each in bench.ask("ListConfigResources", **fields).config_resources}

    before = bench.settled(is_listed, True)
    _delete(bench, name)
    return {"error": error, "before": before, "after": bench.settled(is_listed, False)}


# Throttling and pushes


@chapter.check("TELEMETRY-009", SOURCE, uses=SUBSCRIBED, needs=TELEMETRY, since="3.7")
def asked_too_early(bench: Bench) -> Any:
    """A client that asks again before its interval is over is throttled.

    Subscribe a client id, and ask twice with the same instance id.
    The second has the error THROTTLING_QUOTA_EXCEEDED.
    """
    client = bench.name("client")
    body = _subscribed(bench, client)
    return {"error": error_name(_get(bench, client, body.client_instance_id).error_code)}


@chapter.check("TELEMETRY-010", SOURCE, uses=SUBSCRIBED, needs=TELEMETRY, since="3.7")
def pushed(bench: Bench) -> Any:
    """A push after the subscription is accepted, and a second one before the interval is over is throttled.

    Subscribe a client id, and push twice.
    The errors are NONE and THROTTLING_QUOTA_EXCEEDED.
    """
    body = _subscribed(bench, bench.name("client"))
    return {"errors": [_push(bench, body), _push(bench, body)]}


@chapter.check("TELEMETRY-011", SOURCE, uses=SUBSCRIBED, needs=TELEMETRY, since="3.7")
def terminating(bench: Bench) -> Any:
    """The last push of a client may come early, and is the last one.

    Subscribe a client id; push, push with Terminating, and once more.
    The errors are NONE, NONE and INVALID_REQUEST.
    """
    body = _subscribed(bench, bench.name("client"))
    errors = [_push(bench, body), _push(bench, body, terminating=True), _push(bench, body, terminating=True)]
    return {"errors": errors}


@chapter.check("TELEMETRY-012", SOURCE, uses=SUBSCRIBED, needs=TELEMETRY, since="3.7")
def unknown_subscription(bench: Bench) -> Any:
    """A push to another subscription is refused.

    Subscribe a client id, and push with the subscription id plus one.
    The error is UNKNOWN_SUBSCRIPTION_ID.
    """
    body = _subscribed(bench, bench.name("client"))
    return {"error": _push(bench, body, subscription_id=body.subscription_id ^ 1)}


@chapter.check("TELEMETRY-013", SOURCE, uses=SUBSCRIBED, needs=TELEMETRY, since="3.7")
def unknown_codec(bench: Bench) -> Any:
    """A push with an unknown codec is refused.

    Subscribe a client id, and push with the compression type 9.
    The error is UNSUPPORTED_COMPRESSION_TYPE.
    """
    body = _subscribed(bench, bench.name("client"))
    return {"error": _push(bench, body, compression_type=9)}


@chapter.check("TELEMETRY-014", SOURCE, uses=SUBSCRIBED, needs=TELEMETRY, since="3.7")
def too_large(bench: Bench) -> Any:
    """A push above the size that the broker has named is refused.

    Subscribe a client id, and push one byte more than its largest size.
    The error is TELEMETRY_TOO_LARGE.
    """
    body = _subscribed(bench, bench.name("client"))
    return {"error": _push(bench, body, metrics=bytes(min(body.telemetry_max_bytes, 8 << 20) + 1))}


@chapter.check("TELEMETRY-015", SOURCE, uses=SUBSCRIBED, needs=TELEMETRY, since="3.7")
def not_compressed(bench: Bench) -> Any:
    """A push that cannot be decompressed is refused.

    Subscribe a client id, and push bytes that are not gzip as gzip.
    The error is that of the release.
    """
    body = _subscribed(bench, bench.name("client"))
    return {"error": _push(bench, body, compression_type=1, metrics=b"not gzip")}


@chapter.check("TELEMETRY-016", SOURCE, uses=PUSH, needs=TELEMETRY, since="3.7")
def reserved_ids(bench: Bench) -> Any:
    """A push with the instance id zero or one is refused.

    Push with both.
    The error is INVALID_REQUEST.
    """
    ids = (ZERO_UUID, uuid.UUID(int=1))
    bodies = [bench.ask("PushTelemetry", 0, client_instance_id=each, metrics=b"") for each in ids]
    return {"errors": [error_name(each.error_code) for each in bodies]}

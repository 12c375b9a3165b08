"""Faults in kwire's broker: each is found by the check that is about it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from kwire.broker import Broker, dispatch, injection
from kwire.broker.network import connection
from kwire.broker.responses import SplicedResponse
from kwire.conformance import Verdict
from kwire.conformance.broker import all_checks, read_baseline, run_checks
from kwire.conformance.broker.chapters.sasl import NONCE
from kwire.messages import registry
from kwire.messages.base import ZERO_UUID
from kwire.protocol.error_codes import ErrorCode
from tests.conformance.broker.test_kwire import secured, session_of

Edit = Callable[[Any], None]


class Fault(NamedTuple):
    """A fault: what is wrong, in which API, how, and the check that finds it."""

    what: str
    api: str
    check: str
    request: Edit | None = None
    response: Edit | None = None


def setting(*path: str, **values: Any) -> Edit:
    """Return an edit that sets fields of every struct below a path of arrays."""

    def edit(body: Any) -> None:
        found = [body]
        for name in path:
            found = [each for one in found for each in getattr(one, name) or ()]
        for each in found:
            for name, value in values.items():
                setattr(each, name, value(each) if callable(value) else value)

    return edit


def refuse(body: Any) -> None:
    if body.unknown_tagged_fields:
        raise ValueError("unknown tagged fields")


def read_only_while_waiting(body: Any) -> None:
    if not body.max_wait_ms:
        body.topics = []


def without_authorization_id(request: Any) -> bytes:
    return b"\0" + request.auth_bytes.partition(b"\0")[2] if request.auth_bytes[:1] != b"\0" else request.auth_bytes


def without_signature(response: Any) -> bytes:
    return b"" if response.auth_bytes.startswith(b"v=") else response.auth_bytes


def with_another_signature(response: Any) -> bytes:
    return b"v=AAAA" if response.auth_bytes.startswith(b"v=") else response.auth_bytes


def without_nonce(response: Any) -> bytes:
    return re.sub(rb"^r=[^,]*", b"r=" + NONCE.encode() + b"x", bytes(response.auth_bytes))


def without_denial(topic: Any) -> int:
    denied = topic.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) if denied else topic.error_code


def without_match(config: Any) -> str | None:
    return "" if config.name == "match" and config.value else config.value


def users_only(entry: Any) -> list[Any]:
    return [part for part in entry.entity if part.entity_type == "user"]


def opened(response: Any) -> None:
    response.error_code, response.results = 0, []


def reverse_codecs(response: Any) -> None:
    response.accepted_compression_types.reverse()


INFOS, OPS, ENTITY = ("results", "credential_infos"), ("entries", "ops"), ("entries", "entity")
PARTS, CONFIGS = ("components",), ("resources", "configs")
FETCHED, PRODUCED = ("responses", "partitions"), ("responses", "partition_responses")
LISTED, METADATA = ("topics", "partitions"), ("topics", "partitions")
FAULTS = [
    # Parts of requests that are ignored
    Fault("min bytes ignored", "Fetch", "FETCH-004", setting(min_bytes=0)),
    Fault("min bytes taken for 1", "Fetch", "FETCH-007", setting(min_bytes=lambda r: min(r.min_bytes, 1))),
    Fault("max wait ignored", "Fetch", "FETCH-006", setting(max_wait_ms=0)),
    Fault("waits always", "Fetch", "FETCH-005", setting(min_bytes=1)),
    Fault("reads only while it waits", "Fetch", "FETCH-023", read_only_while_waiting),
    Fault("isolation ignored", "Fetch", "TXN-003", setting(isolation_level=0)),
    Fault(
        "partition limit ignored", "Fetch", "FETCH-009", setting("topics", "partitions", partition_max_bytes=1 << 20)
    ),
    Fault("request limit ignored", "Fetch", "FETCH-010", setting(max_bytes=1 << 30)),
    Fault("leader epoch ignored", "Fetch", "FETCH-013", setting("topics", "partitions", current_leader_epoch=-1)),
    Fault("divergence ignored", "Fetch", "FETCH-014", setting("topics", "partitions", last_fetched_epoch=-1)),
    Fault("sessions ignored", "Fetch", "FETCH-018", setting(session_id=0, session_epoch=-1)),
    Fault("session epochs ignored", "Fetch", "FETCH-019", setting(session_epoch=lambda r: min(r.session_epoch, 1))),
    Fault("forgets nothing", "Fetch", "FETCH-020", setting(forgotten_topics_data=[])),
    Fault(
        "negative offset taken for 0",
        "Fetch",
        "FETCH-003",
        setting("topics", "partitions", fetch_offset=lambda p: max(p.fetch_offset, 0)),
    ),
    Fault("acks 2 accepted", "Produce", "PRODUCE-004", setting(acks=lambda r: min(r.acks, 1))),
    Fault("isolation ignored", "ListOffsets", "TXN-004", setting(isolation_level=0)),
    Fault("leader epoch ignored", "ListOffsets", "LIST-OFFSETS-020", setting(*LISTED, current_leader_epoch=-1)),
    Fault(
        "largest timestamp taken for the end",
        "ListOffsets",
        "LIST-OFFSETS-003",
        setting(*LISTED, timestamp=lambda p: -1 if p.timestamp == -3 else p.timestamp),
    ),
    Fault("epoch ignored", "OffsetForLeaderEpoch", "EPOCH-002", setting("topics", "partitions", leader_epoch=0)),
    Fault(
        "current epoch ignored",
        "OffsetForLeaderEpoch",
        "EPOCH-003",
        setting("topics", "partitions", current_leader_epoch=-1),
    ),
    Fault("creates always", "Metadata", "METADATA-004", setting(allow_auto_topic_creation=True)),
    Fault("empty means all", "Metadata", "METADATA-002", setting(topics=lambda r: r.topics or None)),
    Fault("null means none", "Metadata", "METADATA-003", setting(topics=lambda r: r.topics or [])),
    Fault("operations not sent", "Metadata", "METADATA-009", setting(include_topic_authorized_operations=False)),
    Fault("static members ignored", "JoinGroup", "GROUP-010", setting(group_instance_id=None)),
    Fault("protocol types ignored", "JoinGroup", "GROUP-005", setting(protocol_type="consumer")),
    Fault("session timeouts ignored", "JoinGroup", "GROUP-006", setting(session_timeout_ms=10_000)),
    Fault("generation ignored", "Heartbeat", "GROUP-003", setting(generation_id=1)),
    Fault("instance ids ignored", "SyncGroup", "GROUP-011", setting(group_instance_id=None)),
    Fault("first member leaves only", "LeaveGroup", "GROUP-012", setting(members=lambda r: r.members[:1])),
    Fault(
        "members of commits ignored",
        "OffsetCommit",
        "COMMIT-005",
        setting(generation_id_or_member_epoch=-1, member_id=""),
    ),
    Fault("metadata cut", "OffsetCommit", "COMMIT-004", setting("topics", "partitions", committed_metadata="cut")),
    Fault("stability ignored", "OffsetFetch", "TXN-013", setting(require_stable=False)),
    Fault("null means none", "OffsetFetch", "COMMIT-006", setting(topics=lambda r: r.topics or [])),
    Fault("timeouts ignored", "InitProducerId", "TXN-010", setting(transaction_timeout_ms=1000)),
    Fault("own epoch ignored", "InitProducerId", "TXN-015", setting(producer_id=-1, producer_epoch=-1)),
    Fault("commits always", "EndTxn", "TXN-002", setting(committed=True)),
    Fault(
        "member epochs ignored",
        "ConsumerGroupHeartbeat",
        "CONSUMER-002",
        setting(member_epoch=lambda r: min(r.member_epoch, 1)),
    ),
    Fault("deletes nothing", "DeleteTopics", "METADATA-012", setting(topics=[], topic_names=[])),
    Fault("offset ignored", "DeleteRecords", "LIST-OFFSETS-023", setting("topics", "partitions", offset=0)),
    Fault("type of endpoint ignored", "DescribeCluster", "ERROR-DESCRIBE-CLUSTER-01", setting(endpoint_type=1)),
    Fault("state filters ignored", "ListTransactions", "ERROR-LIST-TRANSACTIONS-00", setting(state_filters=[])),
    Fault("unknown tags refused", "Fetch", "TAGS-FETCH-16", refuse),
    Fault("creates what is validated only", "CreateTopics", "ADMIN-001", setting(validate_only=False)),
    Fault("alters what is validated only", "IncrementalAlterConfigs", "ADMIN-006", setting(validate_only=False)),
    Fault("adds what is validated only", "CreatePartitions", "ADMIN-004", setting(validate_only=False)),
    # Wrong responses
    Fault("software name unchecked", "ApiVersions", "VERSION-002", None, setting(error_code=0)),
    Fault("offset gap", "Produce", "PRODUCE-001", None, setting(*PRODUCED, base_offset=lambda p: 2 * p.base_offset)),
    Fault("append time missing", "Produce", "PRODUCE-015", None, setting(*PRODUCED, log_append_time_ms=-1)),
    Fault("append time always", "Produce", "PRODUCE-016", None, setting(*PRODUCED, log_append_time_ms=1)),
    Fault("start offset missing", "Produce", "PRODUCE-019", None, setting(*PRODUCED, log_start_offset=-1)),
    Fault("records not named", "Produce", "PRODUCE-009", None, setting(*PRODUCED, record_errors=[])),
    Fault("checksum error hidden", "Produce", "PRODUCE-002", None, setting(*PRODUCED, error_code=0)),
    Fault("error of an old format hidden", "Produce", "PRODUCE-V03-M0-GZIP", None, setting(*PRODUCED, error_code=0)),
    Fault("size error hidden", "Produce", "PRODUCE-008", None, setting(*PRODUCED, error_code=0)),
    Fault("sequence gap hidden", "Produce", "PRODUCE-022", None, setting(*PRODUCED, error_code=0)),
    Fault("producer epoch not fenced", "Produce", "PRODUCE-024", None, setting(*PRODUCED, error_code=0)),
    Fault("high watermark missing", "Fetch", "FETCH-001", None, setting(*FETCHED, high_watermark=-1)),
    Fault("aborted list missing", "Fetch", "TXN-002", None, setting(*FETCHED, aborted_transactions=[])),
    Fault("log start offset 0", "Fetch", "FETCH-012", None, setting(*FETCHED, log_start_offset=0)),
    Fault("range error hidden", "Fetch", "FETCH-002", None, setting(*FETCHED, error_code=0)),
    Fault("preferred replica 0", "Fetch", "FETCH-015", None, setting(*FETCHED, preferred_read_replica=0)),
    Fault("session not created", "Fetch", "FETCH-017", None, setting(session_id=0)),
    Fault("end one too far", "ListOffsets", "LIST-OFFSETS-001", None, setting(*LISTED, offset=lambda p: p.offset + 1)),
    Fault("topic ids missing", "Metadata", "METADATA-008", None, setting("topics", topic_id=ZERO_UUID)),
    Fault("leader epoch missing", "Metadata", "METADATA-013", None, setting(*METADATA, leader_epoch=-1)),
    Fault("replicas in sync missing", "Metadata", "METADATA-011", None, setting(*METADATA, isr_nodes=[])),
    Fault("internal topics not marked", "Metadata", "METADATA-014", None, setting("topics", is_internal=False)),
    Fault(
        "offset 0 for none",
        "OffsetFetch",
        "COMMIT-002",
        None,
        setting("topics", "partitions", committed_offset=lambda p: max(p.committed_offset, 0)),
    ),
    Fault("strangers accepted", "Heartbeat", "GROUP-004", None, setting(error_code=0)),
    Fault("left members accepted", "Heartbeat", "GROUP-009", None, setting(error_code=0)),
    Fault("state always empty", "DescribeGroups", "GROUP-013", None, setting("groups", group_state="Empty")),
    Fault("deletes groups with members", "DeleteGroups", "GROUP-014", None, setting("results", error_code=0)),
    Fault("ends without a beginning", "EndTxn", "TXN-008", None, setting(error_code=0)),
    Fault("epoch not raised", "InitProducerId", "TXN-005", None, setting(producer_epoch=0)),
    Fault("names unchecked", "CreateTopics", "ERROR-CREATE-TOPICS-07", None, setting("topics", error_code=0)),
    # SASL
    Fault("any mechanism accepted", "SaslHandshake", "LOGIN-002", None, setting(error_code=0)),
    Fault("mechanisms not listed", "SaslHandshake", "LOGIN-001", None, setting(mechanisms=[])),
    Fault("handshake after the login accepted", "SaslHandshake", "LOGIN-007", None, setting(error_code=0)),
    Fault("wrong password accepted", "SaslAuthenticate", "LOGIN-011", None, setting(error_code=0)),
    Fault("authorization id ignored", "SaslAuthenticate", "LOGIN-013", setting(auth_bytes=without_authorization_id)),
    Fault("any token accepted", "SaslAuthenticate", "LOGIN-014", None, setting(error_code=0)),
    Fault("signature missing", "SaslAuthenticate", "LOGIN-020", None, setting(auth_bytes=without_signature)),
    Fault("signature wrong", "SaslAuthenticate", "LOGIN-021", None, setting(auth_bytes=with_another_signature)),
    Fault("proof unchecked", "SaslAuthenticate", "LOGIN-023", None, setting(error_code=0)),
    Fault("nonce not random", "SaslAuthenticate", "LOGIN-028", None, setting(auth_bytes=without_nonce)),
    Fault("iterations hidden", "DescribeUserScramCredentials", "USER-001", None, setting(*INFOS, iterations=0)),
    Fault("deletes no user", "AlterUserScramCredentials", "USER-003", setting(deletions=[])),
    Fault("iterations unchecked", "AlterUserScramCredentials", "USER-004", None, setting("results", error_code=0)),
    Fault("users twice accepted", "AlterUserScramCredentials", "USER-005", None, setting("results", error_code=0)),
    Fault("named twice accepted", "DescribeUserScramCredentials", "USER-006", None, setting("results", error_code=0)),
    # ACLs
    Fault("operation lost", "CreateAcls", "ACL-001", setting("creations", operation=2)),
    Fault("principal ignored", "DeleteAcls", "ACL-003", setting("filters", resource_name_filter=None)),
    Fault("types of patterns ignored", "DescribeAcls", "ACL-004", setting(pattern_type_filter=1)),
    Fault("operations ignored", "DescribeAcls", "ACL-005", setting(operation=1)),
    Fault("wrong ACLs accepted", "CreateAcls", "ACL-006", None, setting("results", error_code=0)),
    Fault("unknown filters read as any", "DescribeAcls", "ACL-007", setting(operation=lambda r: r.operation or 1)),
    Fault("WRITE implies ALL", "CreateAcls", "ACL-021", setting("creations", operation=2)),
    Fault("READ implies ALL", "CreateAcls", "ACL-022", setting("creations", operation=2)),
    Fault("DENY ignored", "CreateAcls", "ACL-023", setting("creations", permission_type=3)),
    Fault("prefixes ignored", "CreateAcls", "ACL-024", setting("creations", resource_pattern_type=3)),
    Fault("hosts ignored", "CreateAcls", "ACL-025", setting("creations", host="*")),
    Fault("existence told", "Metadata", "ACL-028", None, setting("topics", error_code=without_denial)),
    Fault("names told for ids", "Metadata", "ACL-029", None, setting("topics", name=lambda t: t.name or "told")),
    Fault("operations not sent", "Metadata", "ACL-030", setting(include_topic_authorized_operations=False)),
    Fault("anybody commits", "OffsetCommit", "ACL-032", None, setting("topics", "partitions", error_code=0)),
    Fault("anybody transacts", "InitProducerId", "ACL-033", None, setting(error_code=0)),
    Fault("configs open", "DescribeConfigs", "ACL-035", None, setting("results", error_code=0)),
    Fault("error lost (KAFKA-19246)", "OffsetFetch", "DENIED-OFFSET-FETCH-01", None, setting(topics=[])),
    Fault("users open", "DescribeUserScramCredentials", "DENIED-DESCRIBE-USER-SCRAM-CREDENTIALS-00", None, opened),
    Fault("groups open", "Heartbeat", "DENIED-HEARTBEAT-04", None, setting(error_code=0)),
    # Quotas
    Fault("quotas lost", "AlterClientQuotas", "QUOTA-001", setting("entries", ops=lambda e: e.ops[:1])),
    Fault("sets what is validated only", "AlterClientQuotas", "QUOTA-002", setting(validate_only=False)),
    Fault("removes nothing", "AlterClientQuotas", "QUOTA-003", setting("entries", "ops", value=1.0, remove=False)),
    Fault("strictness ignored", "DescribeClientQuotas", "QUOTA-004", setting(strict=False)),
    Fault("values unchecked", "AlterClientQuotas", "QUOTA-005", None, setting("entries", error_code=0)),
    Fault("producers not throttled", "AlterClientQuotas", "QUOTA-006", setting(*OPS, key="consumer_byte_rate")),
    Fault("consumers not throttled", "AlterClientQuotas", "QUOTA-008", setting(*OPS, key="producer_byte_rate")),
    Fault("types of match ignored", "DescribeClientQuotas", "QUOTA-009", setting(*PARTS, match_type=2, match=None)),
    Fault("filters unchecked", "DescribeClientQuotas", "QUOTA-010", None, setting(error_code=0)),
    Fault("changes not counted", "AlterClientQuotas", "QUOTA-011", setting(*OPS, key="producer_byte_rate")),
    Fault("time not counted", "AlterClientQuotas", "QUOTA-012", setting(*OPS, value=1000.0)),
    Fault("users taken for client ids", "AlterClientQuotas", "QUOTA-020", setting(*ENTITY, entity_type="client-id")),
    Fault("client ids of users ignored", "AlterClientQuotas", "QUOTA-021", setting("entries", entity=users_only)),
    # Telemetry
    Fault("codecs in another order", "GetTelemetrySubscriptions", "TELEMETRY-001", None, reverse_codecs),
    Fault("ids given anew", "GetTelemetrySubscriptions", "TELEMETRY-002", setting(client_instance_id=ZERO_UUID)),
    Fault("matches everybody", "IncrementalAlterConfigs", "TELEMETRY-003", setting(*CONFIGS, value=without_match)),
    Fault("software ignored", "IncrementalAlterConfigs", "TELEMETRY-004", setting(*CONFIGS, value=without_match)),
    Fault("no star", "GetTelemetrySubscriptions", "TELEMETRY-005", None, setting(requested_metrics=["org."])),
    Fault("changes not seen", "PushTelemetry", "TELEMETRY-006", None, setting(error_code=0)),
    Fault("configs unchecked", "IncrementalAlterConfigs", "TELEMETRY-007", None, setting("responses", error_code=0)),
    Fault("not listed", "ListConfigResources", "TELEMETRY-008", None, setting(config_resources=[])),
    Fault("asked at any time", "GetTelemetrySubscriptions", "TELEMETRY-009", None, setting(error_code=0)),
    Fault("pushed at any time", "PushTelemetry", "TELEMETRY-010", None, setting(error_code=0)),
    Fault("never the last", "PushTelemetry", "TELEMETRY-011", setting(terminating=False)),
    Fault("any subscription", "PushTelemetry", "TELEMETRY-012", None, setting(error_code=0)),
    Fault("any codec", "PushTelemetry", "TELEMETRY-013", setting(compression_type=0)),
    Fault("any size", "PushTelemetry", "TELEMETRY-014", setting(metrics=b"")),
    Fault("not decompressed", "PushTelemetry", "TELEMETRY-015", setting(compression_type=0)),
    Fault("reserved ids accepted", "PushTelemetry", "TELEMETRY-016", None, setting(error_code=0)),
]


def test_there_are_more_than_a_hundred_faults() -> None:
    assert len(FAULTS) >= 120
    assert len({(each.what, each.api, each.check) for each in FAULTS}) == len(FAULTS)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with Broker(tmp_path_factory.mktemp("broker")) as broker:
        yield broker


@pytest.fixture(scope="module")
def secured_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with secured(tmp_path_factory.mktemp("secured")) as broker:
        yield broker


NEEDING = {"credentials", "PLAIN credentials", "own users", "authorizer", "telemetry"}


@pytest.mark.sampled
@pytest.mark.sampled(9)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.api} {fault.what} {fault.check}")
@pytest.mark.filterwarnings("ignore")
def test_the_check_finds_the_fault(
    fault: Fault, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    (check,) = (check for check in all_checks() if check.id == fault.check)
    broker: Broker = request.getfixturevalue("secured_broker" if NEEDING & set(check.needs) else "broker")
    key = registry.get(f"{fault.api}Request").API_KEY
    call_handler = dispatch.call_handler

    def edited(response: Any) -> Any:
        if fault.response is not None and response is not None:
            fault.response(response.body if isinstance(response, SplicedResponse) else response)
        return response

    async def later(future: Any) -> Any:
        return edited(await future)

    def faulty(node: Any, call: Any) -> Any:
        if call.context.api_key != key:
            return call_handler(node, call)
        try:
            if fault.request is not None and call.request is not None:
                fault.request(call.request)
        except ValueError as error:
            return dispatch.error_response(call, error)
        response = call_handler(node, call)
        return asyncio.ensure_future(later(response)) if isinstance(response, asyncio.Future) else edited(response)

    monkeypatch.setattr(injection, "call_handler", faulty)
    (result,) = run_checks(session_of(broker, exchange_s=6), [check], read_baseline("4.4")).results
    assert result.verdict is Verdict.FAIL, result
    monkeypatch.undo()
    (result,) = run_checks(session_of(broker), [check], read_baseline("4.4")).results
    assert result.verdict in (Verdict.PASS, Verdict.DEVIATION), result


def test_a_client_above_its_quota_that_may_go_on_is_found(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """KIP-219: throttle times are told, and the connection is read on."""
    monkeypatch.setattr(connection.ClientConnection, "_mute", lambda *_: None)
    checks = [check for check in all_checks() if check.id == "QUOTA-007"]
    (result,) = run_checks(session_of(broker), checks, read_baseline("4.4")).results
    assert result.verdict is Verdict.FAIL, result
    monkeypatch.undo()
    (result,) = run_checks(session_of(broker), checks, read_baseline("4.4")).results
    assert result.verdict is Verdict.PASS, result

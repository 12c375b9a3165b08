"""Faults in kwire's broker: each is found by the check that is about it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from kwire.broker import Broker, dispatch, injection
from kwire.broker.responses import SplicedResponse
from kwire.conformance import Verdict
from kwire.conformance.broker import all_checks, read_baseline, run_checks
from kwire.messages import registry
from kwire.messages.base import ZERO_UUID
from tests.conformance.broker.test_kwire import session_of

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


FETCHED, PRODUCED = ("responses", "partitions"), ("responses", "partition_responses")
LISTED, METADATA = ("topics", "partitions"), ("topics", "partitions")
FAULTS = [
    # Parts of requests that are ignored
    Fault("min bytes ignored", "Fetch", "FETCH-004", setting(min_bytes=0)),
    Fault("min bytes taken for 1", "Fetch", "FETCH-007", setting(min_bytes=lambda r: min(r.min_bytes, 1))),
    Fault("max wait ignored", "Fetch", "FETCH-006", setting(max_wait_ms=0)),
    Fault("waits always", "Fetch", "FETCH-005", setting(min_bytes=1)),
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
]


def test_there_are_sixty_faults() -> None:
    assert len(FAULTS) >= 60
    assert len({(each.what, each.api, each.check) for each in FAULTS}) == len(FAULTS)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with Broker(tmp_path_factory.mktemp("broker")) as broker:
        yield broker


@pytest.mark.sampled
@pytest.mark.sampled(9)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.api} {fault.what} {fault.check}")
@pytest.mark.filterwarnings("ignore")
def test_the_check_finds_the_fault(fault: Fault, broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
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
    checks = [check for check in all_checks() if check.id == fault.check]
    (result,) = run_checks(session_of(broker, exchange_s=6), checks, read_baseline("4.4")).results
    assert result.verdict is Verdict.FAIL, result
    monkeypatch.undo()
    (result,) = run_checks(session_of(broker), checks, read_baseline("4.4")).results
    assert result.verdict in (Verdict.PASS, Verdict.DEVIATION), result

"""Version negotiation: ApiVersions in all versions, versions and APIs that are unknown, the range of every API."""

from __future__ import annotations

import struct
from typing import Any

from kwire.conformance.broker.bench import Bench
from kwire.conformance.broker.chapters.tables import api_versions, code_of, released
from kwire.conformance.broker.checks import Allowed, BrokerCheck, Chapter, Observe
from kwire.conformance.broker.requests import error_name, request
from kwire.messages import ApiVersionsResponse

__all__ = ["chapter"]

chapter = Chapter("Version negotiation")
PLAIN, TELEMETRY = ("plain connection",), ("telemetry",)
OF_TELEMETRY = ("GetTelemetrySubscriptions", "PushTelemetry")
SOFTWARE: dict[str, Any] = {"client_software_name": "kwire", "client_software_version": "1"}
CLIENT_APIS = (
    *("Produce", "Fetch", "ListOffsets", "Metadata", "OffsetCommit", "OffsetFetch", "FindCoordinator", "JoinGroup"),
    *("Heartbeat", "LeaveGroup", "SyncGroup", "DescribeGroups", "ListGroups", "SaslHandshake", "ApiVersions"),
    *("CreateTopics", "DeleteTopics", "DeleteRecords", "InitProducerId", "OffsetForLeaderEpoch", "AddPartitionsToTxn"),
    *("AddOffsetsToTxn", "EndTxn", "WriteTxnMarkers", "TxnOffsetCommit", "DescribeAcls", "CreateAcls", "DeleteAcls"),
    *("DescribeConfigs", "AlterConfigs", "AlterReplicaLogDirs", "DescribeLogDirs", "SaslAuthenticate"),
    *("CreatePartitions", "CreateDelegationToken", "RenewDelegationToken", "ExpireDelegationToken"),
    *("DescribeDelegationToken", "DeleteGroups", "ElectLeaders", "IncrementalAlterConfigs"),
    *("AlterPartitionReassignments", "ListPartitionReassignments", "OffsetDelete", "DescribeClientQuotas"),
    *("AlterClientQuotas", "DescribeUserScramCredentials", "AlterUserScramCredentials", "DescribeQuorum"),
    *("UpdateFeatures", "DescribeCluster", "DescribeProducers", "UnregisterBroker", "DescribeTransactions"),
    *("ListTransactions", "ConsumerGroupHeartbeat", "ConsumerGroupDescribe", "GetTelemetrySubscriptions"),
    *("PushTelemetry", "ListConfigResources", "DescribeTopicPartitions", "ShareGroupHeartbeat", "ShareGroupDescribe"),
    *("ShareFetch", "ShareAcknowledge", "StreamsGroupHeartbeat", "StreamsGroupDescribe"),
    *("DescribeShareGroupOffsets", "AlterShareGroupOffsets", "DeleteShareGroupOffsets"),
)
"""The APIs that clients and tools use."""


@chapter.check("VERSION-001", "KIP-511", needs=PLAIN)
def too_new(bench: Bench) -> Any:
    """ApiVersions of an unknown version has a response of version 0 that lists ApiVersions.

    Send ApiVersions with version 99, a flexible header and a body of an unknown form.
    The response has the format of version 0, the error UNSUPPORTED_VERSION, and the range of ApiVersions.
    The next request on the connection is served.
    """
    connection = bench.connect()
    frame, _ = connection.encode(request("ApiVersions", 3, **SOFTWARE), 3)
    connection.send_bytes(frame[:6] + struct.pack(">h", 99) + frame[8:])
    answer = connection.receive_frame(at_least=4)
    body = ApiVersionsResponse.decode(answer[8:], version=0)  # raises DecodeError for bytes after it, too
    next_code = connection.ask(request("ApiVersions", 0), 0).error_code
    return {
        "error": error_name(body.error_code),
        "keys": [each.api_key for each in body.api_keys],
        "bytes after": 0,
        "same correlation id": answer[4:8] == frame[8:12],
        "next": error_name(next_code),
    }


@chapter.check("VERSION-002", "KIP-511; ApiVersionsRequest.isValid", uses={"ApiVersions": 3})
def software_name(bench: Bench) -> Any:
    """A client software name with other characters than letters, digits, dots and hyphens is refused.

    Send ApiVersions 3 with the software name "a b".
    The error is INVALID_REQUEST.
    """
    return {"error": error_name(bench.ask("ApiVersions", 3, **{**SOFTWARE, "client_software_name": "a b"}).error_code)}


@chapter.check("VERSION-003", "KIP-511; ApiVersionsRequest.isValid", uses={"ApiVersions": 3})
def no_software_name(bench: Bench) -> Any:
    """An empty client software name is refused.

    Send ApiVersions 3 with an empty software name.
    The error is INVALID_REQUEST.
    """
    return {"error": error_name(bench.ask("ApiVersions", 3, client_software_version="1").error_code)}


@chapter.check("VERSION-004", "RequestContext", needs=PLAIN)
def unknown_api(bench: Bench) -> Any:
    """A request of an unknown API closes the connection.

    Send a request with the API key 9999.
    The broker closes the connection, and serves a new one.
    """
    connection = bench.connect()
    frame, _ = connection.encode(request("ApiVersions", 0), 0)
    connection.send_bytes(frame[:4] + struct.pack(">h", 9999) + frame[6:])
    return {"closed": connection.is_closed(), "others": error_name(bench.ask("ApiVersions", 0).error_code)}


@chapter.check("VERSION-005", "RequestContext", needs=PLAIN)
def negative_api(bench: Bench) -> Any:
    """A request with a negative API key closes the connection.

    Send a request with the API key -1.
    The broker closes the connection.
    """
    connection = bench.connect()
    frame, _ = connection.encode(request("ApiVersions", 0), 0)
    connection.send_bytes(frame[:4] + b"\xff\xff" + frame[6:])
    return {"closed": connection.is_closed()}


@chapter.check("VERSION-006", "KIP-35", needs=PLAIN)
def again(bench: Bench) -> Any:
    """ApiVersions may be sent again on a connection in use.

    Send ApiVersions 0, Metadata 1, and ApiVersions 0.
    Both ApiVersions responses are equal.
    """
    connection = bench.connect()
    first = connection.ask(request("ApiVersions", 0), 0)
    connection.ask(request("Metadata", 1, topics=[]), 1)
    return {"equal": connection.ask(request("ApiVersions", 0), 0) == first}


@chapter.check("VERSION-007", "KIP-482", uses={"ApiVersions": 3}, needs=PLAIN)
def header_of_the_response(bench: Bench) -> Any:
    """The response header of ApiVersions has no tagged fields in any version.

    Send ApiVersions 3, whose request header is flexible.
    The error code follows the correlation id directly.
    """
    connection = bench.connect()
    frame, _ = connection.encode(request("ApiVersions", 3, **SOFTWARE), 3)
    connection.send_bytes(frame)
    answer = connection.receive_frame(at_least=7)
    return {"error": error_name(struct.unpack(">h", answer[8:10])[0]), "keys": answer[10] > 1}


@chapter.check(
    "VERSION-008",
    "KIP-584",
    uses={"ApiVersions": 3},
    allowed=(Allowed(path="*", reason="the features are those that this broker has"),),
)
def features(bench: Bench) -> Any:
    """Features are tagged fields of ApiVersions since version 3.

    Send ApiVersions 3.
    The names of the supported and the finalized features are those of the release.
    """
    body = bench.ask("ApiVersions", 3, **SOFTWARE)
    return {
        "supported": sorted(each.name for each in body.supported_features),
        "finalized": sorted(each.name for each in body.finalized_features),
    }


def _range(api: str) -> Observe:
    def observe(bench: Bench) -> Any:
        versions = bench.session.versions_of(api)
        return {"lowest": versions.lowest, "highest": versions.highest}

    return observe


def _beyond(api: str) -> Observe:
    def observe(bench: Bench) -> Any:
        version = bench.session.versions_of(api).highest + 1
        connection = bench.connect()
        frame, _ = connection.encode(request("ApiVersions", 0), 0)
        connection.send_bytes(frame[:4] + struct.pack(">hh", _key(api), version) + frame[8:])
        return {"closed": connection.is_closed()}

    return observe


def _key(api: str) -> int:
    key = request(api, 0).API_KEY
    assert key is not None
    return key


def _add_tables() -> None:
    for api in CLIENT_APIS:
        chapter.add(
            BrokerCheck(
                id=f"RANGE-{code_of(api)}",
                chapter=chapter.name,
                title=f"{api} is listed with the versions of the release",
                source="KIP-35, KIP-896",
                steps=("Send ApiVersions 0.", f"The range of {api} is that of the release."),
                observe=_range(api),
                uses={api: -1},
                needs=TELEMETRY if api in OF_TELEMETRY else (),
                allowed=(
                    Allowed(path="lowest", reason="serves older versions too", values=tuple(range(12))),
                    Allowed(path="highest", reason="does not serve the newest versions, or serves newer ones"),
                ),
                since=released(api, api_versions(api).start)["since"],
            )
        )
    for api in CLIENT_APIS:
        if api == "ApiVersions":
            continue
        chapter.add(
            BrokerCheck(
                id=f"BEYOND-{code_of(api)}",
                chapter=chapter.name,
                title=f"{api} above its highest version closes the connection",
                source="RequestContext.parseRequest",
                steps=(
                    f"Send {api} in the version after the highest that is listed.",
                    "The broker closes the connection.",
                ),
                observe=_beyond(api),
                uses={api: -1},
                needs=(*PLAIN, *TELEMETRY) if api in OF_TELEMETRY else PLAIN,
                since=released(api, api_versions(api).start)["since"],
            )
        )


_add_tables()

"""Messages by name, key and release; header versions."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import pytest
from tests import golden
from tests.schema.writing import field, request

from kwire import schema
from kwire.errors import DecodeError, OptionError, UnsupportedVersion
from kwire.messages import ErrorCode, FetchRequest, registry
from kwire.schema.catalogue import release_files


def test_the_messages_of_a_release_equal_kafkas() -> None:
    in_golden = {line["message"] for line in golden.cached("messages-3.9.1.jsonl.gz")}
    assert set(registry.names("3.9.1")) == in_golden
    assert {line["message"] for line in golden.cached("messages-4.4.0.jsonl.gz")} <= set(registry.names("4.4.0"))
    assert set(registry.names()) == {name for kafka in registry.RELEASES for name in registry.names(kafka)}
    assert registry.names() == sorted(registry.names())


def test_a_release_without_an_api_does_not_list_it() -> None:
    assert "LeaderAndIsrRequest" in registry.names("3.9.1")
    assert "LeaderAndIsrRequest" not in registry.names("4.4.0")
    with pytest.raises(
        OptionError, match=r"message 'LeaderAndIsrRequest' is not in Kafka 4\.4\.0; it is in 2\.0\.1 to 3\.9\.2"
    ):
        registry.get("LeaderAndIsrRequest", kafka="4.4.0")


def test_a_release_has_its_own_versions_and_fields() -> None:
    versions = {kafka: str(registry.get("FetchRequest", kafka).VALID_VERSIONS) for kafka in registry.RELEASES}
    assert (
        versions.items() >= {"4.4.0": "4-18", "3.9.1": "0-17", "2.8.2": "0-12", "2.2.2": "0-10", "2.0.1": "0-8"}.items()
    )
    assert len(versions) == 25
    assert registry.get("FetchRequest") is FetchRequest
    assert str(FetchRequest.VALID_VERSIONS) == "0-18"
    old: Any = registry.get("FetchRequest", kafka="2.8.2")
    assert "replica_state" not in old.__struct_fields__
    assert old().replica_id == 0  # -1 since Kafka 3.5
    assert old is registry.get("FetchRequest", kafka="2.8.2")


@pytest.mark.slow
def test_a_release_equals_its_definitions() -> None:
    definitions = Path(__file__).parents[2] / "definitions"
    for kafka in registry.RELEASES:
        files = {path.stem: path for path in release_files(definitions / f"kafka-{kafka}").values()}
        live = {name for name, path in files.items() if schema.load(path).valid}
        assert live == set(registry.names(kafka))
        for name in live:
            assert schema.render(registry.get(name, kafka).SPEC) == files[name].read_text(), (name, kafka)


def test_a_minor_version_selects_its_latest_patch() -> None:
    assert registry.get("FetchRequest", kafka="3.7") is registry.get("FetchRequest", kafka="3.7.2")
    assert registry.names(kafka="2.8") == registry.names(kafka="2.8.2")


# Bodies written by Kafka's own classes of 3.7.2 and 4.0.2, of version 0, which later releases changed.
DESCRIBED_BY_3_7 = bytes.fromhex(
    "00000000020000000461707007537461626c65000000030000000308756e69666f726d02046f6e6500000000000302630b2f3132372e302e"
    "302e3102076f7264657273000100000000000100010000000000010000800000000000"
)
SUMMARY_BY_4_0 = bytes.fromhex("02000000000000000100000000000000020200000004000000000000050000000000000258000000")


def test_an_undecodable_body_suggests_a_matching_release() -> None:
    with pytest.raises(DecodeError, match=r"; it fits Kafka 3\.7\.2: decode it as that release's") as caught:
        registry.decode("ConsumerGroupDescribeResponse", DESCRIBED_BY_3_7, 0)
    assert caught.value.path[:3] == ("groups", 0, "members")
    group: Any = registry.decode("ConsumerGroupDescribeResponse", DESCRIBED_BY_3_7, 0, kafka="3.7.2")
    assert group.groups[0].members[0].subscribed_topic_names == ["orders"]
    assert registry.fitting("ReadShareGroupStateSummaryResponse", SUMMARY_BY_4_0, 0) == ["4.0.2", "3.9.2", "3.9.1"]
    with pytest.raises(DecodeError, match=r"it fits Kafka 3\.9\.1 to 4\.0\.2"):
        registry.decode("ReadShareGroupStateSummaryResponse", SUMMARY_BY_4_0, 0)
    with pytest.raises(DecodeError) as nowhere:
        registry.decode("ReadShareGroupStateSummaryResponse", SUMMARY_BY_4_0[:-1], 0)
    assert "fits" not in str(nowhere.value)


def test_custom_definitions_are_compiled_on_first_use(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "kafka-clients-9.9.9.jar", "w") as jar:
        # A struct that has taggedVersions alone, as Kafka 3.5's FetchRequest.
        inner = field(
            "Inner", "Inner", versions=None, tag=0, taggedVersions="1+", fields=[field(name="X", versions="1+")]
        )
        jar.writestr("common/message/OrderRequest.json", "// prose\n" + request(field(), inner))
    loaded = registry.load(str(tmp_path / "kafka-clients-9.9.9.jar"))
    cls: Any = loaded.get("OrderRequest")
    assert (loaded.names(), loaded.request(9000)) == (["OrderRequest"], cls)
    order = cls(amount=5, inner=cls.Inner(x=7))
    assert cls.decode(order.encode(version=1), version=1) == order
    with pytest.raises(OptionError, match="did you mean 'OrderRequest'"):
        loaded.get("OrderReqest")
    with pytest.raises(UnsupportedVersion, match="no response with key 9000"):
        loaded.response(9000)
    (tmp_path / "twice").mkdir()
    (tmp_path / "twice" / "x.json").write_text(request(field()))
    with pytest.raises(OptionError, match="message OrderRequest is already defined in"):
        registry.load(str(tmp_path / "kafka-clients-9.9.9.jar"), str(tmp_path / "twice"))
    with pytest.raises(OptionError, match="no such file"):
        registry.load(str(tmp_path / "nothing.jar"))


def test_a_release_is_loaded_with_the_definitions_of_its_base() -> None:
    """Kafka 3.8.1 is stored as its difference from 3.7.2, and so on down to 2.8.2."""
    loaded = registry.load(str(Path(__file__).parents[2] / "definitions" / "kafka-3.8.1"))
    assert loaded.names() == registry.names("3.8.1")
    assert loaded.get("FetchRequest") is registry.get("FetchRequest", "3.8.1")


def test_requests_and_responses_are_found_by_key() -> None:
    assert registry.request(1) is FetchRequest
    assert registry.response(3).__name__ == "MetadataResponse"
    # Key 74 changed its name; the newest release that has a key decides.
    assert registry.request(74).__name__ == "ListConfigResourcesRequest"
    assert registry.request(74, kafka="3.9.1").__name__ == "ListClientMetricsResourcesRequest"
    assert registry.request(4).__name__ == "LeaderAndIsrRequest"


def test_record_types_are_found_by_number_and_module() -> None:
    cases = {
        ("metadata", 1, "metadata"): "UnregisterBrokerRecord",
        ("metadata", 1, "storage"): "RemoteLogSegmentMetadataUpdateRecord",
        ("metadata", 5, None): "PartitionChangeRecord",
        ("coordinator-key", 0, "group-coordinator"): "LegacyOffsetCommitKey",
        ("coordinator-key", 0, "transaction-coordinator"): "TransactionLogKey",
        ("coordinator-value", 2, "group-coordinator"): "GroupMetadataValue",
        ("coordinator-value", 0, "share-coordinator"): "ShareSnapshotValue",
    }
    for (kind, number, module), name in cases.items():
        assert registry.find(kind, number, module=module).__name__ == name
    with pytest.raises(
        OptionError, match="coordinator-key 0 is in several modules; pass module=, one of group-coordinator, "
    ):
        registry.find("coordinator-key", 0)
    with pytest.raises(UnsupportedVersion, match=r"no metadata with key 999 in module storage in Kafka 4\.4\.0"):
        registry.find("metadata", 999, module="storage", kafka="4.4.0")
    for kind in ("request", "response", "metadata", "coordinator-key", "coordinator-value"):
        for kafka in registry.RELEASES:
            for name in registry.names(kafka):
                spec = registry.get(name, kafka).SPEC
                if spec.kind == kind and spec.api_key is not None:
                    modules = ("clients", "metadata", "storage", "group-coordinator", "transaction-coordinator")
                    found = [_find(kind, spec.api_key, module, kafka) for module in (*modules, "share-coordinator")]
                    assert name in found


def _find(kind: str, api_key: int, module: str, kafka: str) -> str | None:
    try:
        return registry.find(kind, api_key, module=module, kafka=kafka).__name__
    except UnsupportedVersion:
        return None


def test_unknown_names_are_reported_with_a_suggestion() -> None:
    with pytest.raises(OptionError, match="did you mean 'FetchRequest'"):
        registry.get("FetchReqest")
    with pytest.raises(OptionError, match=r"unknown message 'Fetchh' .did you mean 'FetchRequest'"):
        registry.get("Fetchh")
    with pytest.raises(OptionError, match=r"available: 4\.4\.0, 4\.3\.1, .*, 2\.0\.1"):
        registry.names(kafka="1.0")
    with pytest.raises(OptionError, match=r"unknown Kafka release '3\.9\.0'; available: 3\.9\.2, 3\.9\.1"):
        registry.names(kafka="3.9.0")
    with pytest.raises(UnsupportedVersion, match="no request with key 999"):
        registry.request(999)


@pytest.mark.requirement("W-80", "W-81", "W-82", "W-83", "S482-24", "S482-25", "S482-26", "S482-28", "S482-29")
def test_header_versions_of_every_api_equal_kafkas() -> None:
    lines = list(golden.lines("headers.jsonl"))
    assert len(lines) == 632
    for line in lines:
        key, version, kafka = line["apiKey"], line["version"], line["kafka"]
        expected = line["request_header_version"], line["response_header_version"]
        found = registry.request_header_version(key, version), registry.response_header_version(key, version)
        assert found == expected, line
        request, response = registry.request(key, kafka), registry.response(key, kafka)
        assert (request.SPEC.header_version(version), response.SPEC.header_version(version)) == expected, line
        assert (version in request.FLEXIBLE_VERSIONS) == line["request_flexible"]
        assert (version in response.FLEXIBLE_VERSIONS) == line["response_flexible"]
        assert list(request.SPEC.listeners) == line["listeners"] or set(request.SPEC.listeners) == set(
            line["listeners"]
        )
        assert (version not in request.SPEC.stable) == line["unstable"]


def test_an_unsupported_version_has_no_header_version() -> None:
    with pytest.raises(UnsupportedVersion):
        registry.request_header_version(1, 99)
    with pytest.raises(UnsupportedVersion):
        registry.response_header_version(999, 0)


def test_error_codes_are_marked_retriable() -> None:
    assert ErrorCode(0) is ErrorCode.NONE
    assert ErrorCode.NOT_LEADER_OR_FOLLOWER == 6
    assert ErrorCode.NOT_LEADER_OR_FOLLOWER.retriable
    assert not ErrorCode.TOPIC_AUTHORIZATION_FAILED.retriable
    assert len(ErrorCode) == 138


def test_an_unknown_error_code_keeps_its_number() -> None:
    unknown = ErrorCode(9999)
    assert (unknown, unknown.name, unknown.retriable) == (9999, "ERROR_9999", False)
    with pytest.raises(ValueError, match="40000"):
        ErrorCode(40000)

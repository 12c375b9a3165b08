"""Kafka's JSON form, both ways (docs/spec/messages.md, part 4 and 8.3)."""

from __future__ import annotations

import copy
import json
import math
from typing import Any
from uuid import UUID

import pytest
from tests import golden
from tests.messages.eight_two import Probe

from kwire.errors import EncodeError, UnsupportedVersion
from kwire.messages import registry
from kwire.schema.merging import layout

ZERO = "AAAAAAAAAAAAAAAAAAAAAA"
PLAIN: dict[str, Any] = {"a": 0, "s": "", "ls": [], "by": "", "r": None, "u": ZERO, "l": 0, "iSR": []}


@pytest.mark.sampled
@pytest.mark.requirement("J-01", "J-02", "J-04", "J-05", "J-06", "J-10", "W-02")
@pytest.mark.parametrize("kafka", ["3.9.1", "4.4.0"])
def test_kafkas_json_and_bytes_decode_to_the_same_message(kafka: str) -> None:
    lines = golden.cached(f"messages-{kafka}.jsonl.gz")
    assert len(lines) == {"3.9.1": 2593, "4.4.0": 625}[kafka]
    for line in lines:
        cls, version, data = registry.get(line["message"], kafka=kafka), line["version"], golden.unpack(line["b64"])
        assert data is not None
        where = f"{line['message']} version {version} ({line['case']})"
        decoded = cls.decode(data, version=version)
        written = decoded.to_json(version=version)
        assert written == line["json"], where
        assert list(written) == list(line["json"]), where
        read = cls.from_json(line["json"], version=version)
        assert read.to_json(version=version) == line["json"], where
        if "unknown_tags" not in line:  # they are not part of the JSON form
            assert read.encode(version=version) == data, where


def test_kafkas_json_is_valid_for_the_standard_library() -> None:
    message = Probe(l=2**63 - 1, ls=[Probe.El(k=1, v=1.0)], s="\x00😀")
    text = json.dumps(message.to_json(version=1))
    assert Probe.from_json(json.loads(text), version=1) == message


def test_the_merged_class_reads_keys_of_earlier_releases() -> None:
    """Each body and JSON of 3.9.1's classes, if the merged class has the same version."""
    renamed = set()
    for line in golden.cached("messages-3.9.1.jsonl.gz"):
        cls, version, data = registry.get(line["message"]), line["version"], golden.unpack(line["b64"])
        own = registry.get(line["message"], kafka="3.9.1")
        if line["case"] != "full" or version not in cls.VALID_VERSIONS or own.SPEC.kind != cls.SPEC.kind:
            continue
        forms = [list(layout(spec, version)) for spec in (own.SPEC, cls.SPEC)]
        if [form for _, form, _ in forms[0]] != [form for _, form, _ in forms[1]]:
            continue  # a few versions changed after 3.9
        assert cls.from_json(line["json"], version=version).encode(version=version) == data, line["message"]
        if forms[0] != forms[1]:
            renamed.add(line["message"])
    assert renamed >= {"VoteRequest", "TxnOffsetCommitRequest"}


def test_a_renamed_key_is_read_in_the_versions_that_had_it() -> None:
    cls: Any = registry.get("OffsetCommitRequest")
    obj = cls(group_id="g", generation_id_or_member_epoch=7).to_json(version=8)
    obj["generationId"] = obj.pop("generationIdOrMemberEpoch")
    assert cls.from_json(obj, version=8).generation_id_or_member_epoch == 7
    with pytest.raises(EncodeError, match="'generationIdOrMemberEpoch' is missing"):
        cls.from_json(obj, version=9)


def test_a_reused_name_is_read_as_its_earlier_field() -> None:
    """acceptableRecoveryLag is an int32 in version 0 and an int64 from version 1 (Kafka 4.4)."""
    cls: Any = registry.get("StreamsGroupHeartbeatResponse")
    old: Any = registry.get("StreamsGroupHeartbeatResponse", kafka="4.3")
    obj = old(acceptable_recovery_lag=600).to_json(version=0)
    read = cls.from_json(obj, version=0)
    assert (read.acceptable_recovery_lag_legacy, read.acceptable_recovery_lag) == (600, -1)
    assert read.encode(version=0) == old(acceptable_recovery_lag=600).encode(version=0)
    assert (
        cls.from_json(cls(acceptable_recovery_lag=2**40).to_json(version=1), version=1).acceptable_recovery_lag == 2**40
    )


@pytest.mark.requirement("J-02", "J-04", "J-18", "SDEF-83")
def test_json_equals_kafkas_for_the_specification_example() -> None:
    message = Probe(s="s", by=b"\xff\xfe\x01", r=b"rec", l=2**40, ls=[Probe.El(k=1, v=1.0), Probe.El(k=1, v=2.0)])
    assert json.dumps(message.to_json(version=1), separators=(",", ":")) == (
        '{"a":0,"s":"s","ls":[{"k":1,"v":1.0},{"k":1,"v":2.0}],"by":"//4B","r":"cmVj",'
        f'"u":"{ZERO}","l":1099511627776,"iSR":[]}}'
    )
    assert Probe.from_json(message.to_json(version=1), version=1) == message


@pytest.mark.requirement("J-05", "W-21")
def test_non_default_tagged_fields_keep_their_schema_position() -> None:
    assert Probe(t1=None).to_json(version=3) == {**PLAIN, "t1": None}
    message = Probe(t0=5, t1="ab", t2=Probe.Ns(p="x"), t3=1)
    assert list(message.to_json(version=3))[:6] == ["a", "s", "t0", "t1", "t2", "t3"]
    assert Probe.from_json(message.to_json(version=3), version=3) == message


@pytest.mark.requirement("J-08")
def test_records_are_kept_where_kafka_omits_them() -> None:
    assert Probe(r=b"").to_json(version=1)["r"] == ""
    assert Probe(r=None).to_json(version=1)["r"] is None
    assert Probe.from_json({**PLAIN, "r": "cmVj"}, version=1).r == b"rec"


@pytest.mark.requirement("J-06", "W-26")
def test_unknown_tagged_fields_are_not_part_of_the_json_form() -> None:
    assert Probe(unknown_tagged_fields=[(9, b"\x01")]).to_json(version=1) == PLAIN


@pytest.mark.requirement("J-03", "W-30", "W-31", "W-32", "SDEF-103", "SDEF-108", "SDEF-109", "SDEF-110", "SDEF-111")
def test_a_value_missing_from_the_version_is_dropped_only_if_ignorable() -> None:
    assert Probe(l=1, u=UUID(int=1), isr=None, r=b"x").to_json(version=0) == {"a": 0, "s": ""}
    for values, path in [
        ({"only2": 8}, ("only2",)),
        ({"by": b"x"}, ("by",)),
        ({"by": None}, ("by",)),
        ({"t0": 1}, ("t0",)),
        ({"t1": None}, ("t1",)),
        ({"t2": Probe.Ns()}, ("t2",)),
        ({"ls": [Probe.El()]}, ("ls",)),
    ]:
        with pytest.raises(EncodeError, match="version 0 does not have this field") as caught:
            Probe(**values).to_json(version=0)
        assert caught.value.path == path


@pytest.mark.requirement("J-04", "W-18", "SDEF-58", "SDEF-59")
def test_null_in_a_non_nullable_field_is_reported() -> None:
    with pytest.raises(EncodeError, match=r"^s: null is not allowed in version 1"):
        Probe(s=None).to_json(version=1)
    assert Probe(s=None).to_json(version=2)["s"] is None


@pytest.mark.requirement("J-07")
def test_invalid_versions_are_rejected() -> None:
    for version in (-1, 4, 32767):
        with pytest.raises(UnsupportedVersion, match=f"Probe: no version {version}; versions are 0-3"):
            Probe().to_json(version=version)
        with pytest.raises(UnsupportedVersion):
            Probe.from_json(PLAIN, version=version)


BAD_VALUES = [
    ({"a": 128}, "a: 128 does not fit int8"),
    ({"a": True}, "a: True is not a valid int8 value"),
    ({"a": 1.0}, "a: 1.0 is not a valid int8 value"),
    ({"l": 2**63}, "l: .* does not fit int64"),
    ({"s": b"x"}, "s: b'x' is not a valid string value"),
    ({"by": "x"}, "by: 'x' is not a valid bytes value"),
    ({"u": "x"}, "u: 'x' is not a valid uuid value"),
    ({"ls": {}}, "ls: {} is not a list"),
    ({"ls": [Probe.El(), 5]}, r"ls\[1\]: 5 is not a valid El value"),
    ({"ls": [Probe.El(v="1")]}, r"ls\[0\].v: '1' is not a valid float64 value"),
    ({"ls": [Probe.El(k=2**31)]}, r"ls\[0\].k: 2147483648 does not fit int32"),
    ({"isr": [0, None]}, r"isr\[1\]: None is not a valid int32 value"),
]


@pytest.mark.requirement("W-03")
@pytest.mark.parametrize(("values", "error"), BAD_VALUES)
def test_a_value_of_a_wrong_type_is_reported_with_its_path(values: dict[str, Any], error: str) -> None:
    with pytest.raises(EncodeError, match=f"^{error}"):
        Probe(**values).to_json(version=1)


BAD_JSON = [
    ("J-10", {"a": ...}, "a: 'a' is missing; version 1 requires it"),
    ("J-10", {"iSR": ...}, "isr: 'iSR' is missing"),
    ("J-19", {"ls": [{"k": 1}]}, r"ls\[0\].v: 'v' is missing"),
    ("J-11", {"only2": 5}, r"only2: version 1 does not have this field \(its versions are 2\)"),
    ("J-11", {"t3": 5}, "t3: version 1 does not have this field"),
    ("J-13", {"a": None}, "a: None is not a valid int8 value"),
    ("J-13", {"ls": None}, "ls: None is not a JSON array"),
    ("J-14", {"s": 5}, "s: 5 is not a valid string value"),
    ("J-14", {"u": ZERO + "AAA"}, "u: .* is not a valid uuid value"),
    ("J-14", {"u": "AAAA"}, "u: 'AAAA' is not a valid uuid value"),
    ("J-14", {"iSR": {}}, "isr: {} is not a JSON array"),
    ("J-14", {"ls": [5]}, r"ls\[0\]: 5 is not a JSON object"),
    ("J-15", {"l": "5"}, "l: '5' is not a valid int64 value"),
    ("J-15", {"l": 5.0}, "l: 5.0 is not a valid int64 value"),
    ("J-15", {"t0": 32768}, "t0: 32768 does not fit int16"),
    ("J-15", {"iSR": [2**31]}, r"isr\[0\]: 2147483648 does not fit int32"),
    ("J-16", {"a": 128}, "a: 128 does not fit int8"),
    ("J-16", {"a": "1"}, "a: '1' is not a valid int8 value"),
    ("J-17", {"ls": [{"k": 1, "v": 1}]}, r"ls\[0\].v: 1 is not a valid float64 value; write 1.0"),
    ("J-18", {"by": "//4"}, "by: '//4' is not a valid bytes value: not base64"),
    ("J-18", {"by": "__4B"}, "by: '__4B' is not a valid bytes value"),
    ("J-18", {"by": 5}, "by: 5 is not a valid bytes value"),
    ("J-18", {"r": "="}, "r: '=' is not a valid records value"),
]


@pytest.mark.requirement("J-10", "J-11", "J-13", "J-14", "J-15", "J-16", "J-17", "J-18", "J-19", "T-17", "T-18")
@pytest.mark.parametrize(("rule", "change", "error"), BAD_JSON)
def test_invalid_json_is_reported_with_its_path(rule: str, change: dict[str, Any], error: str) -> None:
    obj = {key: value for key, value in {**PLAIN, **change}.items() if value is not ...}
    with pytest.raises(EncodeError, match=f"^{error}"):
        Probe.from_json(obj, version=1)


@pytest.mark.requirement("J-11", "J-16", "T-17", "T-18")
def test_lenient_mode_reads_as_kafka() -> None:
    def read(**change: Any) -> Any:
        return Probe.from_json({**PLAIN, **change}, version=1, lenient=True)

    assert read(only2=5).only2 == 5
    assert [read(a=value).a for value in (128, 200, 255, 256, 127)] == [0, 72, 127, -128, 127]
    with pytest.raises(EncodeError):
        read(a=257)


@pytest.mark.requirement("J-12")
def test_unknown_keys_are_ignored() -> None:
    assert Probe.from_json({**PLAIN, "color": "red", "A": 5}, version=1) == Probe()


@pytest.mark.requirement("J-13")
def test_null_is_accepted_if_any_version_is_nullable() -> None:
    assert Probe.from_json({**PLAIN, "s": None}, version=1).s is None


@pytest.mark.requirement("J-10")
def test_a_missing_tagged_field_has_its_default() -> None:
    assert Probe.from_json(PLAIN, version=3) == Probe()


@pytest.mark.parametrize("obj", [None, [], "x", 5])
def test_a_message_is_a_json_object(obj: Any) -> None:
    with pytest.raises(EncodeError, match="is not a JSON object"):
        Probe.from_json(obj, version=1)


@pytest.mark.requirement("J-17")
def test_float64_values_round_trip() -> None:
    """NaN and infinities are what Kafka's converter prints: JSON has no such numbers, and other parsers refuse NaN."""
    values = [1.5, -0.0, 5, math.inf, -math.inf, math.nan]
    written = Probe(ls=[Probe.El(k=i, v=v) for i, v in enumerate(values)]).to_json(version=1)
    text = json.dumps(written, allow_nan=False)
    assert [repr(item["v"]) for item in written["ls"]] == ["1.5", "-0.0", "5.0", "'Infinity'", "'-Infinity'", "'NaN'"]
    bare = text.replace('"Infinity"', "Infinity").replace('"-Infinity"', "-Infinity").replace('"NaN"', "NaN")
    for given in (text, bare):
        read = [item.v for item in Probe.from_json(json.loads(given), version=1).ls]
        assert repr(read) == "[1.5, -0.0, 5.0, inf, -inf, nan]"
    for wrong in ("1.5", "nan", "inf", "INFINITY", ""):
        with pytest.raises(EncodeError, match="is not a valid float64 value"):
            Probe.from_json({**written, "ls": [{"k": 0, "v": wrong}]}, version=1)


def test_reading_does_not_change_the_json_object() -> None:
    obj = {**PLAIN, "ls": [{"k": 1, "v": 1.0}], "iSR": [1, 2]}
    before = copy.deepcopy(obj)
    Probe.from_json(obj, version=1).isr.append(3)
    assert obj == before

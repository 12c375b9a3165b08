"""`kwire group` on real `__consumer_offsets`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.crafted import HOSTILE
from tests.log.internal.dumps import batch, keyed, log_of

from kwire.messages import registry


def rows(kwire: Callable, *arguments: str | Path) -> list[dict]:
    result = kwire("group", *arguments, "--format", "json")
    assert result.code == 0, result.err
    return json.loads(result.out)


def test_groups_print_one_line_each(kafka_logs: dict[str, Path], kwire: Callable) -> None:
    result = kwire("group", kafka_logs["modern"] / "data")
    assert result.code == 0
    head, *lines = result.out.splitlines()
    assert head.split() == [
        "GROUP",
        "KIND",
        "STATE",
        "MEMBERS",
        "PARTITIONS",
        "LAG",
        "EPOCH",
        "ASSIGNOR",
        "LAST",
        "RECORD",
    ]
    assert [line.split()[:6] for line in lines] == [
        ["g-admin", "classic", "Empty", "0", "1", "7008"],
        ["g-classic", "classic", "Empty", "0", "3", "15311"],
        ["g-new", "consumer", "Empty", "0", "3", "16457"],
        ["g-static", "classic", "Stable", "1", "2", "12712"],
        ["tx-group", "classic", "Empty", "0", "1", "-144"],  # it committed an offset after the log end
        ["tx-group2", "classic", "Empty", "0", "1", "615"],
    ]


def test_one_group_prints_a_line_per_partition(kafka_logs: dict[str, Path], kwire: Callable) -> None:
    found = rows(kwire, kafka_logs["modern"] / "data", "g-static")
    assert [(row["topic"], row["partition"], row["offset"], row["lag"], row["metadata"]) for row in found] == [
        ("orders", 0, 844, 6171, "note é 8"),
        ("orders", 1, 356, 6541, "note é 11"),
        ("orders", 2, None, None, None),
    ]
    assert rows(kwire, kafka_logs["modern"] / "data", "g-s*", "--offsets") == found
    table = kwire("group", kafka_logs["modern"] / "data", "g-static").out
    assert "note é 11" in table


def test_partitions_of_a_share_group_come_from_the_share_state_topic(
    kafka_logs: dict[str, Path], kwire: Callable
) -> None:
    found = rows(kwire, kafka_logs["modern44"] / "data", "share44")
    assert [(row["topic"], row["partition"], row["offset"]) for row in found] == [
        ("events44", 0, 204),
        ("events44", 1, 136),
    ]
    assert found[0]["ranges"][0] == {"first_offset": 204, "last_offset": 204, "state": "Available", "delivery_count": 3}


def test_members_print_with_their_assignments(kafka_logs: dict[str, Path], kwire: Callable) -> None:
    data = kafka_logs["modern"] / "data"
    (member,) = rows(kwire, data, "--members")
    assert (member["group"], member["instance_id"], member["client_id"]) == ("g-static", "g-inst-1", "s1")
    assert kwire("group", data, "--members").out.splitlines()[1].split()[-2:] == ["orders", "orders:0,1,2"]
    past = {row["member_id"]: row for row in rows(kwire, data, "g-new", "--members", "--at-offset", "48")}
    assert past["Xh9ftK4SQ1yvlMcMsRVFZQ"]["revoking"][0]["topic"] == "orders"
    assert past["Xh9ftK4SQ1yvlMcMsRVFZQ"]["state"] == "UnrevokedPartitions"


def test_an_earlier_state_has_no_lag(kafka_logs: dict[str, Path], kwire: Callable) -> None:
    data = kafka_logs["modern"] / "data"
    (row,) = rows(kwire, data, "g-admin", "--at-offset", "115")
    assert (row["offset"], row["log_end_offset"], row["lag"]) == (7, None, None)
    both = rows(kwire, data, "g-admin", "--at-time", "2026-11-21T04:28:19.719Z")
    assert [(row["partition"], row["offset"]) for row in both] == [(0, 7), (1, 11)]
    assert rows(kwire, data, "g-admin", "--at-time", "1795235299719") == both
    assert rows(kwire, data / "__consumer_offsets-1", "--at-offset", "0") == []


def test_history_has_every_record_of_a_group(kafka_logs: dict[str, Path], kwire: Callable) -> None:
    data = kafka_logs["modern"] / "data"
    found = rows(kwire, data, "g-admin", "--history")
    assert [(row["offset"], row["kind"], row["is_tombstone"]) for row in found] == [
        (114, "OffsetCommit", False),
        (115, "OffsetCommit", False),
        (119, "OffsetCommit", True),
    ]
    everything = rows(kwire, data, "--history")
    assert len(everything) == 120 + 19
    assert {row["kind"] for row in everything if row["is_control"]} == {"COMMIT", "ABORT"}
    assert len(rows(kwire, data, "--history", "--at-time", "1795235284045")) < 10
    lines = kwire("group", data, "g-admin", "--history").out.splitlines()
    assert lines[3].endswith("group=g-admin topic=orders partition=1  (deleted)")


def test_unreadable_records_are_reported_with_exit_code_1(tmp_path: Path, kwire: Callable) -> None:
    key = registry.get("OffsetCommitKey")(group="g", topic="t", partition=0)  # type: ignore[call-arg]
    good = keyed(key, registry.get("OffsetCommitValue")(offset=5), 3)  # type: ignore[call-arg]
    data = log_of(tmp_path, "__consumer_offsets-0", batch([good, (good[0], b"\0\3\0"), good], 0))
    result = kwire("group", data)
    assert result.code == 1
    assert result.out.splitlines()[1].startswith("g ")
    assert result.err.startswith("kwire: __consumer_offsets-0, offset 1, value: offset: ")
    assert "at byte 2" in result.err
    history = kwire("group", data, "--history", "--format", "json")
    assert history.code == 1
    assert [row["error_position"] for row in json.loads(history.out)] == [None, 2, None]
    assert "ERROR offset: " in kwire("group", data, "--history").out


def test_control_characters_in_names_are_escaped(tmp_path: Path, kwire: Callable) -> None:
    key = registry.get("OffsetCommitKey")(group=HOSTILE, topic=HOSTILE, partition=0)  # type: ignore[call-arg]
    value = registry.get("OffsetCommitValue")(offset=5, metadata=HOSTILE)  # type: ignore[call-arg]
    data = log_of(tmp_path, "__consumer_offsets-0", batch([keyed(key, value, 3), (keyed(key, None)[0], b"")], 0))
    for arguments in ((), ("--offsets",), ("--history",), ("--history", "--format", "json")):
        result = kwire("group", data, *arguments)
        for character in ("\x1b", "\x07", "\x9b", "\u202e", "\u200d"):
            assert character not in result.out + result.err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--offsets", "--members"), "mutually exclusive"),
        (("--history", "--members"), "mutually exclusive"),
        (("--at-offset", "5", "--at-time", "6"), "mutually exclusive"),
        (("--at-offset", "5"), "applies to one partition of 3"),
        (("--at-offset", "-5", "g-new"), "expected a number from 0"),
        (("--at-time", "soon"), "--at-time 'soon'"),
        (("nobody",), "no group matches 'nobody'; available: g-admin, g-classic"),
        (("g-clasic",), "no group matches 'g-clasic' (did you mean 'g-classic'?); available: g-admin"),
    ],
)
def test_wrong_usage_has_exit_code_2(
    arguments: tuple[str, ...], says: str, kafka_logs: dict[str, Path], kwire: Callable
) -> None:
    result = kwire("group", kafka_logs["modern"] / "data", *arguments)
    assert result.code == 2
    assert says in result.err


def test_a_directory_without_groups_prints_a_note(kafka_logs: dict[str, Path], kwire: Callable) -> None:
    result = kwire("group", kafka_logs["modern"] / "data" / "orders-0")
    assert (result.code, result.out) == (2, "")
    assert "no partition of '__consumer_offsets'; available topics: orders" in result.err

"""`kwire cluster` on real metadata logs: its output, and secrets that it never prints."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from kwire.cli.internal.cluster import Part
from kwire.internal_topics.cluster_rows import ClusterPart

SECRETS = ("test-salt-0123456", "dGVzdC1zYWx0LTAxMjM0NTY=", "qWzJ6Xx99SYVQreIInlXxJbFh/N6Sijl/9xo9e6zuAs=", "AjdQKp2bv")


def rows(kwire: Callable, *arguments: str | Path) -> list[dict]:
    result = kwire("cluster", *arguments, "--format", "json")
    assert result.code == 0, result.err
    return json.loads(result.out)


def test_the_overview_summarizes_the_cluster(kafka_logs: dict[str, Path], kwire: Callable) -> None:
    facts = {row["fact"]: row["value"] for row in rows(kwire, kafka_logs["modern44"] / "data")}
    assert facts["metadata.version"] == 33
    assert (facts["records below offset"], facts["from the snapshot at"]) == (365, 361)
    assert (facts["brokers"], facts["topics"], facts["partitions"], facts["quorum leader"]) == (1, 8, 23, 1)
    assert facts["partitions without leader"] == 23  # the only broker was stopped


@pytest.mark.sampled(3)
@pytest.mark.parametrize("part", list(Part))
@pytest.mark.parametrize("archive", ["modern", "modern44"])
def test_every_part_prints_as_a_table_and_as_json(
    archive: str, part: Part, kafka_logs: dict[str, Path], kwire: Callable
) -> None:
    data = kafka_logs[archive] / "data"
    table = kwire("cluster", data, part)
    found = rows(kwire, data, part)
    assert (table.code, table.err) == (0, "")
    assert len(table.out.splitlines()) == (len(found) + 1 if found else 0)
    assert bool(found) == (part is not Part.TOKENS)
    for secret in SECRETS:
        assert secret not in table.out + json.dumps(found)


def test_parts_are_those_of_the_library() -> None:
    assert {*Part} - {*ClusterPart} == {"overview", "snapshots"}
    assert {*ClusterPart} <= {*Part}


def test_acls_and_quotas_print_as_in_kafkas_tools(kafka_logs: dict[str, Path], kwire: Callable) -> None:
    data = kafka_logs["modern"] / "data"
    assert kwire("cluster", data, "acls").out.splitlines()[1].split() == [
        *("User:m1-user", "ALLOW", "READ", "TOPIC", "PREFIXED", "m1-", "*"),
    ]
    assert "user=<default>              request_percentage       75" in kwire("cluster", data, "quotas").out


def test_secrets_are_hidden_by_default(kafka_logs: dict[str, Path], kwire: Callable) -> None:
    data = kafka_logs["modern"] / "data"
    for arguments in (("users",), ("--history",)):
        hidden = [kwire("cluster", data, *arguments, *redact).out for redact in ((), ("--redact",))]
        assert hidden[0] == hidden[1]
        assert hidden[0].count("[hidden]") == 6
        assert not any(secret in hidden[0] for secret in SECRETS)
        shown = kwire("cluster", data, *arguments, "--show-secrets").out
        assert "[hidden]" not in shown
        assert shown.count("dGVzdC1zYWx0LTAxMjM0NTY=") == 2


def test_the_state_at_an_earlier_time_is_shown(kafka_logs: dict[str, Path], kwire: Callable) -> None:
    data = kafka_logs["modern"] / "data"
    assert [row["topic"] for row in rows(kwire, data, "topics", "--at-offset", "27")] == ["ids", "orders"]
    assert rows(kwire, data / "__cluster_metadata-0", "acls", "--at-time", "2026-11-21T04:28:02.500Z") == []
    assert len(rows(kwire, data, "--history", "--at-offset", "27")) == 27


def test_snapshots_are_listed_with_their_contents(kafka_logs: dict[str, Path], kwire: Callable) -> None:
    found = rows(kwire, kafka_logs["modern"] / "data", "snapshots")
    assert [(row["end_offset"], row["epoch"], row["records"], row["is_whole"]) for row in found] == [
        (0, 0, 0, True),
        (221, 2, 80, True),
        (401, 3, 94, True),
    ]


def test_wrong_usage_has_exit_code_2(kafka_logs: dict[str, Path], kwire: Callable) -> None:
    data = kafka_logs["modern"] / "data"
    for arguments in (("nothing",), ("topics", "--history"), ("--at-offset", "-1")):
        assert kwire("cluster", data, *arguments).code == 2
    assert kwire("cluster", kafka_logs["legacy"] / "data").code == 2

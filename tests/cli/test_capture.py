"""`kwire capture` on real captures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kwire.cli.main import run


@pytest.fixture(scope="module")
def pcap(kafka_logs: dict[str, Path]) -> str:
    return str(next(kafka_logs["wire"].rglob("k391.tcpdump.pcap")))


def test_a_table_has_one_line_per_exchange(pcap: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["capture", pcap, "--api", "produce"]) == 0
    header, *lines = capsys.readouterr().out.splitlines()
    assert header.split()[:4] == ["TIME", "CONN", "CLIENT", "BROKER"]
    assert len(lines) == 51
    assert all(" Produce " in line for line in lines)


def test_json_has_decoded_bodies(pcap: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["capture", pcap, "--api", "CreateTopics", "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {row["api"] for row in rows} == {"CreateTopics"}
    names = {topic["name"] for row in rows for topic in row["request"]["topics"]}
    assert names
    assert all(row["response"]["topics"][0]["name"] in names for row in rows)
    assert all(row["latency_ms"] > 0 for row in rows)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Produse", "unknown API 'Produse' (did you mean 'Produce'?)"),
        ("FetchRequest", "unknown API 'FetchRequest' (did you mean 'Fetch'?)"),
        ("*Grup*", "unknown API '*Grup*'"),
    ],
)
def test_an_unknown_api_is_an_error(pcap: str, name: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    """An empty table was printed."""
    assert run(["capture", pcap, "--api", "Produce", "--api", name]) == 2
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", f"kwire: --api: {message}\n")


@pytest.mark.parametrize("words", [["--port", "9999"], ["--client", "nobody"], ["--client", "x", "--api", "Fetch"]])
def test_no_request_that_matches_is_a_warning(pcap: str, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["capture", pcap, *words]) == 0
    assert f"no request matches {' and '.join(sorted(words[::2]))}" in capsys.readouterr().err


def test_problems_set_the_exit_code_and_can_be_listed(pcap: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["capture", pcap, "--problems", "--format", "jsonl", "--no-bodies"]) == 1
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {row["problem"] for row in rows} == {"its response was not captured"}
    assert "request" not in rows[0]


def test_a_summary_counts_by_api(pcap: str, capsys: pytest.CaptureFixture[str]) -> None:
    run(["capture", pcap, "--summary", "--format", "json"])
    rows = {row["api"]: row for row in json.loads(capsys.readouterr().out)}
    assert (rows["Produce"]["requests"], rows["Produce"]["unanswered"]) == (51, 0)
    assert rows["Produce"]["versions"] == [7, 9, 10, 11]
    assert 0 < rows["Produce"]["median_ms"] <= rows["Produce"]["p99_ms"]


def test_secrets_are_hidden(pcap: str, capsys: pytest.CaptureFixture[str]) -> None:
    run(["capture", pcap, "--api", "AlterUserScramCredentials", "--format", "json"])
    (row,) = json.loads(capsys.readouterr().out)
    hidden = "W2hpZGRlbl0="  # [hidden]
    assert [(u["salt"], u["saltedPassword"]) for u in row["request"]["upsertions"]] == [(hidden, hidden)]


def test_a_file_that_is_not_a_capture_gives_a_one_line_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x.pcap").write_bytes(b"no capture")
    assert run(["capture", str(tmp_path / "x.pcap")]) == 1
    assert "not a pcap or pcapng file" in capsys.readouterr().err

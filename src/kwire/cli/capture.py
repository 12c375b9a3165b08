"""`kwire capture`: a packet capture as Kafka requests and responses."""

from __future__ import annotations

import os
import time
from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kwire.cli import terminal
from kwire.cli.command import FINE, FOUND, add_command, if_interrupted
from kwire.cli.options import FormatOption
from kwire.cli.rows import Column, Format, Row, write_rows
from kwire.errors import OptionError, counted
from kwire.pages.quantities import bytes_text, time_text

if TYPE_CHECKING:
    from kwire.capture import CaptureCounts, Exchange

__all__ = ["register"]

NS_PER_MS = 1_000_000


def _time(value: int) -> str:
    return (time_text(value // NS_PER_MS) or "-").replace("T", " ")


def _milliseconds(value: float) -> str:
    return f"{value:.3f}"


EXCHANGES = (
    Column(key="request_time_ns", heading="TIME", show=_time),
    Column(key="connection", heading="CONN", right=True),
    Column(key="client", heading="CLIENT"),
    Column(key="server", heading="BROKER"),
    Column(key="client_id", heading="CLIENT ID"),
    Column(pick=lambda row: row["api"] or row["api_key"], heading="API"),
    Column(key="api_version", heading="V", right=True),
    Column(key="correlation_id", heading="CORRELATION", right=True),
    Column(key="request_bytes", heading="REQUEST", show=bytes_text, right=True),
    Column(key="response_bytes", heading="RESPONSE", show=bytes_text, right=True),
    Column(key="latency_ms", heading="MS", show=_milliseconds, right=True),
    Column(key="problem", heading="PROBLEM"),
)
SUMMARY = (
    Column(key="api", heading="API"),
    Column(key="versions", heading="VERSIONS", show=lambda versions: ",".join(map(str, versions))),
    Column(key="requests", heading="REQUESTS", right=True),
    Column(key="unanswered", heading="UNANSWERED", right=True),
    Column(key="request_bytes", heading="SENT", show=bytes_text, right=True),
    Column(key="response_bytes", heading="RECEIVED", show=bytes_text, right=True),
    Column(key="median_ms", heading="MEDIAN MS", show=_milliseconds, right=True),
    Column(key="p99_ms", heading="P99 MS", show=_milliseconds, right=True),
    Column(key="clients", heading="CLIENTS", right=True),
)


def register(app: typer.Typer) -> None:
    """Add `capture` to the app."""
    add_command(
        app,
        "capture",
        capture,
        "kwire capture kafka.pcap",
        "kwire capture kafka.pcap --summary",
        "kwire capture kafka.pcap --api Fetch --problems --format jsonl",
        "kwire capture kafka.pcap --logs copy",
        section="Protocol",
    )


def capture(
    files: Annotated[list[str], typer.Argument(help="pcap or pcapng files: local paths or URLs.", metavar="FILE")],
    port: Annotated[
        list[int] | None,
        typer.Option(metavar="PORT", help="Broker port; detected from the bytes by default. Repeatable."),
    ] = None,
    api: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="API name or pattern (Fetch, *Group*). Repeatable.")
    ] = None,
    client: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="Client id or pattern (*, ?). Repeatable.")
    ] = None,
    problems: Annotated[bool, typer.Option("--problems", help="Only missing, unknown or unreadable messages.")] = False,
    summary: Annotated[bool, typer.Option("--summary", help="One line per API: counts, bytes, latencies.")] = False,
    bodies: Annotated[
        bool,
        typer.Option("--bodies/--no-bodies", help="In JSON output: decoded requests and responses."),
    ] = True,
    logs: Annotated[
        Path | None,
        typer.Option(
            "--logs", metavar="DIR", help="Write the records that were fetched and produced as a log directory."
        ),
    ] = None,
    format: FormatOption = Format.TABLE,
) -> int:
    """Show the Kafka requests in packet captures with their responses.

    Broker ports are detected from the traffic; set --port where a capture is too damaged for that. SASL passwords are
    not shown. With --logs, records keep their offsets. Exit code 1 if a part of the capture
    is missing or cannot be read.
    """
    from kwire.capture import CaptureCounts
    from kwire.messages.registry import check_api_pattern

    for name in api or ():
        check_api_pattern(name, "--api")
    counts = CaptureCounts()
    if logs is not None:
        _refuse(logs, {"--api": api, "--client": client, "--problems": problems, "--summary": summary})
        exit_code = _write_logs(files, logs, port or [], counts, format)
        _warn_of_lost(counts)
        return exit_code
    exit_code, is_empty = FINE, True

    def rows() -> Iterator[Row]:
        nonlocal exit_code, is_empty
        for file, exchange in _exchanges(files, port or [], counts):
            if api and not _matches(exchange.api_name or str(exchange.api_key), api):
                continue
            if client and not _matches(exchange.client_id or "", client):
                continue
            row = exchange.to_json(bodies=bodies and not summary and format is not Format.TABLE)
            if row["problem"]:
                exit_code = FOUND
            elif problems:
                continue
            is_empty = False
            yield {"file": file, **row} if len(files) > 1 else row

    if summary:
        write_rows(_summary(rows()), SUMMARY, format)
    else:
        write_rows(rows(), EXCHANGES, format)
    given = [name for name, value in (("--port", port), ("--api", api), ("--client", client)) if value]
    if is_empty and given and not problems:
        terminal.warn(f"no request matches {' and '.join(given)}")
    _warn_of_lost(counts)
    return exit_code


def _refuse(logs: Path, given: Mapping[str, object]) -> None:
    for name, value in given.items():
        if value:
            raise OptionError(f"{name} selects requests to show; --logs writes the records of all")


def _write_logs(files: list[str], logs: Path, ports: list[int], counts: CaptureCounts, format: Format) -> int:
    from kwire.capture.logs import write_logs
    from kwire.cli.log.restore import write_partitions

    _check_exist(files)
    with if_interrupted(f"{logs} was not written"):
        written = write_logs(files, logs, now_ms=time.time_ns() // NS_PER_MS, ports=ports, counts=counts)
    write_partitions(written.partitions, format)
    warnings = list(written.warnings())
    for each in warnings:
        terminal.warn(each)
    return FOUND if warnings else FINE


def _warn_of_lost(counts: CaptureCounts) -> None:
    from kwire.capture.capture import MAX_CONNECTIONS

    if counts.packets and counts.not_tcp == counts.packets:
        terminal.warn(
            f"no TCP over IP in {counted(counts.packets, 'packet')} ({counted(counts.fragments, 'IP fragment')})"
        )
    elif counts.lost_bytes or counts.fragments:
        ignored = counted(counts.fragments, "IP fragment")
        terminal.warn(f"{counted(counts.lost_bytes, 'byte')} outside of frames; {ignored} ignored")
    if counts.given_up:
        ended = counted(counts.given_up, "idle one")
        terminal.warn(f"more than {MAX_CONNECTIONS} connections were open: {ended} ended")


def _exchanges(files: list[str], ports: list[int], counts: CaptureCounts) -> Iterator[tuple[str, Exchange]]:
    from kwire.capture import read_capture

    _check_exist(files)
    for file in files:
        for exchange in read_capture(file, ports=ports, counts=counts):
            yield file, exchange


def _check_exist(files: list[str]) -> None:
    for file in files:
        if "://" not in file and not os.path.exists(file):
            raise OptionError(f"{file}: no such file or directory")


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name.lower(), pattern.lower()) for pattern in patterns)


@dataclass(slots=True)
class _Api:
    """Totals of one API. Latencies take 8 bytes each."""

    versions: set[int] = field(default_factory=set)
    clients: set[str] = field(default_factory=set)
    times: array[float] = field(default_factory=lambda: array("d"))
    rows: int = 0
    requests: int = 0
    unanswered: int = 0
    request_bytes: int = 0
    response_bytes: int = 0

    def add(self, row: Row) -> None:
        self.rows += 1
        self.clients.add(row["client"])
        if row["api_version"] is not None:
            self.versions.add(row["api_version"])
        if row["latency_ms"] is not None:
            self.times.append(row["latency_ms"])
        self.requests += row["request_bytes"] is not None
        self.unanswered += row["response_bytes"] is None
        self.request_bytes += row["request_bytes"] or 0
        self.response_bytes += row["response_bytes"] or 0


def _summary(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield one row per API, the most frequent first."""
    apis: dict[str, _Api] = {}
    for row in rows:
        apis.setdefault(str(row["api"] or f"api key {row['api_key']}"), _Api()).add(row)
    for name, seen in sorted(apis.items(), key=lambda item: -item[1].rows):
        times = sorted(seen.times)
        yield {
            "api": name,
            "versions": sorted(seen.versions),
            "requests": seen.requests,
            "unanswered": seen.unanswered,
            "request_bytes": seen.request_bytes,
            "response_bytes": seen.response_bytes,
            "median_ms": times[(len(times) - 1) // 2] if times else None,
            "p99_ms": times[int((len(times) - 1) * 0.99)] if times else None,
            "clients": len(seen.clients),
        }

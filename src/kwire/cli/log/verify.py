"""`kwire log verify`: the damage in a log directory, worst first."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kwire.cli import terminal
from kwire.cli.client_configs import is_cluster
from kwire.cli.command import FINE, FOUND, USAGE
from kwire.cli.log.directories import bytes_of, open_logs, selected, warn_of_ignored
from kwire.cli.log.report import check_page_path, write_page
from kwire.cli.log.selection import Selection
from kwire.cli.options import ClientConfigFile, ClientConfigs, FormatOption, LogPath, Partitions, Topics
from kwire.cli.rows import Column, Format, Row, write_rows
from kwire.errors import hide_secrets
from kwire.pages.escaping import printable
from kwire.pages.quantities import bytes_text, count_text

if TYPE_CHECKING:
    from kwire.log.files.damage import Damage
    from kwire.log.reading.readable_log import LogSource, ReadableLog
    from kwire.maintenance.verify import DirectoryFindings

__all__ = ["COLUMNS", "damage_rows", "totals", "verify"]


def _place(row: Row) -> str:
    position = "" if row["position"] is None else f":{row['position']}"
    return f"{row['place']}{position}"


def _offsets(row: Row) -> str | None:
    first, last = row["first_offset"], row["last_offset"]
    if first is None:
        return None
    return str(first) if first == last else f"{first}-{last}"


COLUMNS = (
    Column(key="severity", heading="SEVERITY"),
    Column(key="kind", heading="KIND"),
    Column(pick=_place, heading="FILE:BYTE"),
    Column(pick=_offsets, heading="OFFSETS"),
    Column(key="cause", heading="CAUSE"),
    Column(key="effect", heading="EFFECT ON KAFKA"),
    Column(key="hint", heading="REMEDY"),
)


def verify(
    path: LogPath,
    topic: Topics = None,
    partition: Partitions = None,
    notes: Annotated[
        bool, typer.Option("--notes", help="Harmless findings too, such as traces of an unclean shutdown.")
    ] = False,
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            metavar="SOURCE",
            help="Cluster (kafka://...) or log directory to compare the batches with: those that both have.",
        ),
    ] = None,
    report: Annotated[Path | None, typer.Option(metavar="FILE.html", help="HTML page to write as well.")] = None,
    config: ClientConfigs = None,
    config_file: ClientConfigFile = None,
    format: FormatOption = Format.TABLE,
) -> int:
    """Check every batch, index, snapshot and checkpoint of a log directory, or the batches of a cluster.

    Each finding has its position, cause, effect on Kafka and remedy. Checking continues after each damaged part, and
    nothing is changed. Of a cluster, only the batches of the leaders can be checked. In a copy of `kwire log pull`,
    segments are compared with the hashes of its manifest as well, and with --against, batches with the cluster's
    batches; what compaction has changed there is a note. Exit code 1 if there is damage or a difference, else 2 if
    there are files that this user may not read.
    """
    settings, none = (config, config_file), (None, None)
    is_for_path = against is None or is_cluster(path)
    source, original = open_logs(path, *(settings if is_for_path else none), may_share=True), None
    if against is not None:
        original = open_logs(against, *(none if is_for_path and not is_cluster(against) else settings))
    logs = selected(source, Selection.parse(topic, partition))
    if report is not None:
        check_page_path(report)
    from kwire.log import LogDirectory
    from kwire.maintenance.pull.manifest import manifest_damages
    from kwire.maintenance.verify import verify_logs

    size = bytes_of(logs)
    with terminal.progress("Verifying", size if original is None else 2 * size) as bar:
        chosen = logs if topic or partition else None
        findings = verify_logs(source, chosen, advance=bar.advance)
        if isinstance(source, LogDirectory):
            keys = None if chosen is None else {(log.topic, log.partition) for log in chosen}
            findings.damages += manifest_damages(source.url, keys)
        if original is not None:
            findings.damages += _differences(source, logs, original, bar.advance)
    damages = [each for each in findings.damages if notes or not each.is_harmless]
    rows = damage_rows(damages, source.url)
    write_rows(rows if format is Format.TABLE else map(_public, rows), COLUMNS, format)
    if report is not None:
        from kwire.pages.damage_report import render_damage

        page = render_damage(
            findings, source=hide_secrets(path), root=source.url, made_at=datetime.datetime.now(datetime.UTC)
        )
        write_page(report, page)
    if format is Format.TABLE:
        print(totals(findings, notes_shown=notes))
        if original is not None:
            print(printable(f"compared with {hide_secrets(original.url)}"))
        if report is not None:
            print(printable(f"{report} written"))
    if findings.unchecked:
        terminal.warn(f"not checked: {findings.unchecked}")
        warn_of_ignored(source.ignored)
    refused = _refused(findings)
    if refused:
        terminal.warn(f"not checked: {_count(refused, 'file')} that this user may not read")
    if sum(not each.is_harmless for each in findings.damages) > refused:
        return FOUND
    return USAGE if refused else FINE


def _refused(findings: DirectoryFindings) -> int:
    """Return the number of files and directories that this user may not read."""
    from kwire.log.files.damage import Severity

    return sum(each.severity is Severity.NOT_CHECKED for each in findings.damages)


def _differences(
    source: LogSource[ReadableLog],
    logs: list[ReadableLog],
    original: LogSource[ReadableLog],
    advance: Callable[[int], None],
) -> list[Damage]:
    """Return where logs differ from the original; logs that were made from admin APIs are not compared."""
    from kwire.log import LogDirectory
    from kwire.maintenance.comparison import compare
    from kwire.maintenance.pull.manifest import read_manifest
    from kwire.storage.open_store import open_store

    manifest = read_manifest(open_store(source.url)) if isinstance(source, LogDirectory) else None
    topics = {} if manifest is None else manifest.topics
    made = sorted(name for name in {log.topic for log in logs} if name in topics and topics[name].made_from)
    if made:
        terminal.warn(f"not compared: {', '.join(made)}: made from admin APIs")

    def is_compacted(topic: str) -> bool:
        configs = topics[topic].configs if topic in topics else None
        return configs is None or "compact" in configs.get("cleanup.policy", "")

    compared = [log for log in logs if log.topic not in made]
    return list(compare(compared, original, is_compacted=is_compacted, advance=advance))


def damage_rows(damages: list[Damage], root: str) -> list[Row]:
    """Return findings as rows. place: the file, relative to root."""
    return [{**each.as_row(), "place": each.file.removeprefix(root).lstrip("/") or each.file} for each in damages]


def _public(row: Row) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key != "place"}


def totals(findings: DirectoryFindings, *, notes_shown: bool) -> str:
    """Return the last line of the table: what was read and what was found."""
    segments = sum(len(each.segments) for each in findings.partitions)
    size = bytes_text(sum(each.size_bytes for each in findings.partitions))
    of_segments = "" if findings.unchecked else f"{_count(segments, 'segment')}, "
    read = f"{_count(len(findings.partitions), 'partition')}, {of_segments}{size} read"
    by_severity = Counter(each.severity for each in findings.damages if not each.is_harmless)
    notes = sum(each.is_harmless for each in findings.damages)
    damage = ", ".join(f"{n} {severity.text}" for severity, n in sorted(by_severity.items(), reverse=True))
    what = f"{_count(by_severity.total(), 'finding')} ({damage})" if damage else "no damage"
    if by_severity.total() == _refused(findings) > 0:
        what = f"no damage in what this user may read; {_count(by_severity.total(), 'file')} not checked"
    hidden = "" if notes_shown or not notes else f"; {_count(notes, 'note')} (--notes shows them)"
    return f"{read}: {what}{hidden}"


def _count(n: int, what: str) -> str:
    return f"{count_text(n)} {what}{'' if n == 1 else 's'}"

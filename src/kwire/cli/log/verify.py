"""`kwire log verify`: everything that is wrong in a log directory, worst first."""

from __future__ import annotations

import datetime
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kwire.cli import terminal
from kwire.cli.command import FINE, FOUND
from kwire.cli.log.directories import bytes_of, open_directory, selected
from kwire.cli.log.selection import Selection
from kwire.cli.rows import Column, Format, Row, write_rows
from kwire.errors import OptionError
from kwire.pages.escaping import printable
from kwire.pages.quantities import bytes_text, count_text

if TYPE_CHECKING:
    from kwire.log.damage import Damage
    from kwire.log.verify import DirectoryFindings

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
    Column(key="kind", heading="WHAT"),
    Column(pick=_place, heading="FILE:BYTE"),
    Column(pick=_offsets, heading="OFFSETS"),
    Column(key="cause", heading="CAUSE"),
    Column(key="effect", heading="WHAT KAFKA DOES"),
    Column(key="hint", heading="WHAT TO DO"),
)


def verify(
    path: Annotated[str, typer.Argument(help="Log directory, partition directory or segment; a local path or a URL.")],
    topic: Annotated[
        list[str] | None, typer.Option(help="Only topics of this name or pattern (*, ?). Repeatable.")
    ] = None,
    partition: Annotated[list[int] | None, typer.Option(help="Only this partition. Repeatable.")] = None,
    notes: Annotated[
        bool, typer.Option("--notes", help="Also what is no damage, such as the traces of a stop without shutdown.")
    ] = False,
    report: Annotated[Path | None, typer.Option(metavar="FILE.html", help="Write an HTML page too.")] = None,
    shape: Annotated[Format, typer.Option("--format", help="How to print.")] = Format.TABLE,
) -> int:
    """Check every batch, index, snapshot and checkpoint; say where damage is, what Kafka makes of it, what to do.

    Reads everything once and changes nothing; goes on behind each damaged place. Exit code 1 if there is damage.
    """
    directory = open_directory(path)
    logs = selected(directory, Selection(topics=topic or (), partitions=partition or ()))
    if report is not None and (report.is_dir() or not report.parent.is_dir()):
        raise OptionError(f"{report}: not the name of a file in a directory that exists")
    from kwire.log.verify import verify_directory

    with terminal.progress("Verifying", bytes_of(logs)) as bar:
        chosen = logs if topic or partition or len(directory) == 1 else None
        found = verify_directory(directory, chosen, advance=bar.advance)
    damages = [each for each in found.damages if notes or not each.is_harmless]
    rows = damage_rows(damages, directory.url)
    write_rows(rows if shape is Format.TABLE else map(_public, rows), COLUMNS, shape)
    if report is not None:
        from kwire.pages.damage_report import render_damage

        page = render_damage(found, source=path, root=directory.url, made_at=datetime.datetime.now(datetime.UTC))
        try:
            report.write_text(page, encoding="utf-8", errors="replace")
        except OSError as error:
            raise OptionError(f"{report}: cannot be written: {error.strerror}") from error
    if shape is Format.TABLE:
        print(totals(found, notes_shown=notes))
        if report is not None:
            print(printable(f"{report}: the same as a page"))
    return FOUND if any(not each.is_harmless for each in found.damages) else FINE


def damage_rows(damages: list[Damage], root: str) -> list[Row]:
    """Findings as rows; place: the file without the directory that was asked for."""
    return [{**each.as_row(), "place": each.file.removeprefix(root).lstrip("/") or each.file} for each in damages]


def _public(row: Row) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key != "place"}


def totals(found: DirectoryFindings, *, notes_shown: bool) -> str:
    """The last line of the table: how much was read, how much was found."""
    segments = [segment for each in found.partitions for segment in each.segments]
    size = bytes_text(sum(segment.size_bytes for segment in segments))
    read = f"{_count(len(found.partitions), 'partition')}, {_count(len(segments), 'segment')}, {size} read"
    by_severity = Counter(each.severity for each in found.damages if not each.is_harmless)
    notes = sum(each.is_harmless for each in found.damages)
    damage = ", ".join(f"{n} {severity.text}" for severity, n in sorted(by_severity.items(), reverse=True))
    what = f"{_count(by_severity.total(), 'damage')} ({damage})" if damage else "no damage"
    hidden = "" if notes_shown or not notes else f"; {_count(notes, 'note')} (--notes shows them)"
    return f"{read}: {what}{hidden}"


def _count(n: int, what: str) -> str:
    return f"{count_text(n)} {what}{'' if n == 1 else 's'}"

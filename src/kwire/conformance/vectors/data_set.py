"""The data set of this package: a compressed file of JSON Lines for each chapter, and a manifest.

`./dev vectors` makes the files with Kafka's own classes. They are read a line at a time.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterable, Iterator
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import msgspec

from kwire.conformance.vectors.case import Case, release_order
from kwire.errors import OptionError, did_you_mean
from kwire.target_paths import write_whole

__all__ = ["CHAPTERS", "DATA", "TEXTS", "cases", "check_release", "lines", "manifest", "write_cases"]

CHAPTERS = ("primitives", "messages", "headers", "frames", "data", "batches")
"""In the order of the specification."""

DATA: Traversable = resources.files(__package__) / "data"
TEXTS = ("README.md", "LICENSE", "manifest.json")
"""Files beside the chapters, copied as they are."""

_decoder = msgspec.json.Decoder(Case)


def manifest() -> dict[str, Any]:
    """Return the version of the data set, the Kafka releases that made and judged it, and the number of cases."""
    found: dict[str, Any] = json.loads((DATA / "manifest.json").read_text())
    return found


def lines(chapter: str) -> Iterator[bytes]:
    """Read the lines of a chapter."""
    with (DATA / f"{chapter}.jsonl.xz").open("rb") as compressed, lzma.open(compressed) as stream:
        yield from stream


def check_release(release: str | None) -> None:
    """Raise OptionError for a release that the data set knows nothing of."""
    if release is None:
        return
    known: list[str] = manifest()["releases"]
    try:
        minor = release_order(release)[:2]
    except ValueError:
        minor = ()
    if minor not in [release_order(each)[:2] for each in known]:
        raise OptionError(f"unknown Kafka release {release!r}; known: {known[0]} to {known[-1]}")


def chosen(only: Iterable[str]) -> tuple[str, ...]:
    """Return the chapters that --only names, all of them if it names none. Raises OptionError."""
    words = tuple(only)
    for word in words:
        if word not in CHAPTERS:
            raise OptionError(f"unknown chapter {word!r}{did_you_mean(word, CHAPTERS)}; known: {', '.join(CHAPTERS)}")
    return tuple(each for each in CHAPTERS if not words or each in words)


def cases(*, only: Iterable[str] = (), release: str | None = None) -> Iterator[Case]:
    """Read the cases, of some chapters and of one Kafka release if given. Raises OptionError."""
    chapters = chosen(only)
    check_release(release)
    for chapter in chapters:
        for line in lines(chapter):
            case = _decoder.decode(line)
            if release is None or case.is_in(release):
                yield case


def write_cases(folder: Path, *, only: Iterable[str] = (), release: str | None = None) -> dict[str, int]:
    """Write a file of JSON Lines for each chapter into a folder, with README, licence and manifest.

    Returns the number of cases in each file. Raises OptionError.
    """
    chapters = chosen(only)
    check_release(release)
    folder.mkdir(parents=True, exist_ok=True)
    counts = {}
    for chapter in chapters:
        kept = [line for line in lines(chapter) if release is None or _decoder.decode(line).is_in(release)]
        write_whole(folder / f"{chapter}.jsonl", b"".join(kept))
        counts[f"{chapter}.jsonl"] = len(kept)
    for name in TEXTS:
        write_whole(folder / name, (DATA / name).read_bytes())
    return counts

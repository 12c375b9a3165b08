"""Hand-made log directories with data that real brokers do not write: hostile names and keys, damage, odd sizes."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

from tests.records.building import batch, record

# What a terminal would act on: a title change and a colour, C1's CSI, a right-to-left override, a zero-width joiner.
HOSTILE = "a\x1b]0;owned\x07\x1b[31mred\x9b2J\u202egnp.exe\u200d"
ACTED_ON = ("\x1b", "\x07", "\x9b", "\u202e", "\u200d", "\r", "\x7f")

# hostile HTML markup, and rich's console markup
MARKUP = "<script>alert('x')</script>&amp;\"'[bold red]hello[/]"


def segment(folder: Path, *batches: bytes, base_offset: int = 0) -> Path:
    """Write a segment with these batches to a partition directory."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{base_offset:020}.log"
    file.write_bytes(b"".join(batches))
    return file


def hostile_log(data: Path) -> Path:
    """Write a log directory with hostile topic names, keys, values and headers."""
    text, markup = HOSTILE.encode(), MARKUP.encode()
    records = (
        record(0, 0, text, markup, [(text, text), (markup, b"\xff\xfe"), (b"", None)]),
        record(1, 0, markup, text),
        record(2, 0, b"\xff\x00\xed\xa0\x80", b"line\nbreak\rreturn"),
    )
    segment(data / f"{HOSTILE}-0", batch(b"".join(records), count=3))
    segment(data / f"{MARKUP.replace('/', '')}-0", batch(b"".join(records), count=3))
    return data


def policy(page: ElementTree.Element) -> str:
    """Return the Content-Security-Policy of a page; it must precede everything it governs."""
    head = page.find("head")
    assert head is not None
    metas = [each for each in head if each.attrib.get("http-equiv") == "Content-Security-Policy"]
    assert len(metas) == 1
    assert list(head).index(metas[0]) <= 1
    return metas[0].attrib["content"]

"""Numbers, strings and lengths alone, under their names in Kafka's protocol guide."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

from tools.vectors.draft import Draft
from tools.vectors.edits import varint

__all__ = ["primitives"]

FLEXIBLE_SINCE = "2.4.1"
ALWAYS = "2.0.1"
MAKER = "4.4.0"

BORDERS = sorted({0, 1, -1, 300, *(s * (2**n) + d for n in range(6, 32) for s in (1, -1) for d in (-1, 0, 1))})
INTEGERS = {"INT8": (8, True), "INT16": (16, True), "UINT16": (16, False), "INT32": (32, True)}
INTEGERS |= {"UNSIGNED_INT32": (32, False), "INT64": (64, True), "VARINT": (32, True), "VARLONG": (64, True)}
LENGTHS = (0, 1, 62, 63, 64, 126, 127, 128, 255, 256, 8191, 8192, 16382, 16383, 16384, 32766, 32767)
TEXTS = {
    "ascii": "orders",
    "latin": "käse",
    "zero": "a\0b",
    "cjk": "日本語",
    "emoji": "😀",
    "edge": "\U0010ffff\u07ff\u0800",
}
STRINGS = ("STRING", "COMPACT_STRING", "NULLABLE_STRING", "COMPACT_NULLABLE_STRING")
BYTES = ("BYTES", "COMPACT_BYTES", "NULLABLE_BYTES", "COMPACT_NULLABLE_BYTES")


def primitives() -> Iterator[Draft]:
    """Return the cases of the chapter."""
    for name, (bits, signed) in INTEGERS.items():
        low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
        far = {s * 2**n + d for n in (34, 35, 41, 42, 48, 49, 55, 56, 62) for s in (1, -1) for d in (-1, 0)}
        for value in sorted({*BORDERS, *far, low, low + 1, high - 1, high}):
            if low <= value <= high:
                yield _made(name, str(value), value, f"the number {value}")
        width = 1 if name.startswith("VAR") else bits // 8
        yield _edited(name, "empty", b"", "no bytes", "W-40")
        if width > 1:
            yield _edited(name, "cut", bytes(width - 1), f"{width - 1} bytes, one is missing", "W-40")
    for value, case in ((0.0, "zero"), (-0.0, "minus-zero"), (1.5, "1.5"), (-1e300, "large"), (5e-324, "smallest")):
        yield _made("FLOAT64", case, value, f"the number {value}")
    yield _edited("FLOAT64", "cut", bytes(7), "7 bytes, one is missing", "W-40")
    for name in (
        "AAAAAAAAAAAAAAAAAAAAAA",
        "AAAAAAAAAAAAAAAAAAAAAQ",
        "_____________________w",
        "bGlicGhpbG9zb3BoZXJz-w",
    ):
        yield _made("UUID", name, name, f"the uuid {name}")
    yield _edited("UUID", "cut", bytes(15), "15 bytes, one is missing", "W-40")
    for value in (False, True):
        yield _made("BOOLEAN", str(value).lower(), value, str(value).lower())
    for byte in (2, 127, 128, 255):
        reason = f"{byte}; every byte but 0 is true"
        yield _edited("BOOLEAN", str(byte), bytes([byte]), reason, "W-52; Kafka's protocol guide, BOOLEAN")
    for name in STRINGS + BYTES:
        yield from _sequences(name)
    yield from _varints()


def _sequences(name: str) -> Iterator[Draft]:
    text, compact, nullable = name in STRINGS, "COMPACT" in name, "NULLABLE" in name
    for length in LENGTHS:
        value = "s" * length if text else base64.b64encode(b"b" * length).decode()
        yield _made(name, f"length-{length}", value, f"{length} bytes")
    if nullable:
        yield _made(name, "null", None, "null")
    else:
        null = b"\0" if compact else b"\xff\xff" if text else b"\xff\xff\xff\xff"
        yield _edited(name, "null", null, "null, but the type is not nullable", "W-41")
    if text:
        for case, content in TEXTS.items():
            yield _made(name, case, content, f"text: {case}", source="UTF-8")
        for case, bad in {
            "ff": b"\xff",
            "cut": b"\xe6\x97",
            "surrogate": b"\xed\xa0\x80",
            "overlong": b"\xc0\xaf",
        }.items():
            head = varint(len(bad) + 1) if compact else len(bad).to_bytes(2, "big")
            reason = "not UTF-8"
            forbidden = "a string is UTF-8; Java reads replacement characters"
            yield _edited(name, f"utf8-{case}", head + bad, reason, "W-46; T-13", forbidden=forbidden)
    for case, length, left in (("long", 5, 4), ("longest", 32767 if text else 2**31 - 2, 4), ("no-content", 1, 0)):
        head = varint(length + 1) if compact else length.to_bytes(2 if text else 4, "big")
        yield _edited(name, case, head + b"a" * left, f"the length is {length}, and {left} bytes are left", "W-43")
    yield _edited(name, "empty", b"", "no bytes, the length is missing", "W-40")
    if compact:
        yield _edited(
            name, "long-varint", b"\x82\0a", "the length has one byte more than it needs", "W-10", encoding="free"
        )
        yield _edited(name, "varint-6", b"\x82\x80\x80\x80\x80\0a", "the length is a varint of six bytes", "W-10")
        yield _edited(name, "cut-varint", b"\x82", "the length ends inside its varint", "W-40")
        if text:
            yield _edited(name, "length-32768", varint(32769) + b"s" * 32768, "32768 bytes", "W-42")
    else:
        yield _edited(name, "cut-length", b"\0" if text else bytes(3), "the length ends early", "W-40")
        negative = b"\xff\xfe" if text else b"\xff\xff\xff\xfe"
        forbidden = "null has the length -1" if nullable else ""
        yield _edited(name, "negative", negative, "the length is -2", "W-14", forbidden=forbidden)


def _varints() -> Iterator[Draft]:
    """Return varints that writers never write. Three projects had the same fault at the tenth byte."""
    full = b"\xff" * 9 + b"\x01"
    for name, most, least in (("VARINT", 5, b"\xff\xff\xff\xff\x0f"), ("VARLONG", 10, full)):
        yield _edited(name, "lowest", least, "the smallest number, in all of its bytes", "W-10", encoding="canonical")
        for length in range(2, most + 1):
            long = b"\x82" + b"\x80" * (length - 2) + b"\0"
            yield _edited(name, f"long-{length}", long, f"the number 1 in {length} bytes", "W-10")
        yield _edited(name, "too-long", b"\x80" * most + b"\0", f"{most + 1} bytes", "W-10")
        yield _edited(name, "endless", b"\xff" * 16, "no last byte", "W-10")
        for length in range(1, most):
            yield _edited(
                name, f"cut-{length}", b"\x80" * length, f"ends after {length} bytes, the last says more", "W-40"
            )
        last = b"\xff" * (most - 1) + b"\x7f"
        forbidden = "bits above those of the type; Java drops them"
        yield _edited(name, "overflow", last, "bits beyond the type in the last byte", "W-10", forbidden=forbidden)


def _since(name: str) -> str:
    return FLEXIBLE_SINCE if "COMPACT" in name or name in ("UINT16", "FLOAT64") else ALWAYS


def _made(name: str, case: str, value: Any, reason: str, source: str = "") -> Draft:
    return Draft(
        chapter="primitives",
        type=name,
        version=0,
        case=case,
        since=_since(name),
        until=None,
        maker=MAKER,
        task={"op": "primitive", "type": name, "value": value},
        judge={"op": "primitive", "type": name},
        reason=reason,
        source=source or "Kafka's protocol guide, primitive types",
    )


def _edited(name: str, case: str, data: bytes, reason: str, source: str, **more: Any) -> Draft:
    return Draft(
        chapter="primitives",
        type=name,
        version=0,
        case=case,
        since=_since(name),
        until=None,
        maker=MAKER,
        data=data,
        judge={"op": "primitive", "type": name},
        reason=reason,
        source=source,
        **{"encoding": "free", **more},
    )

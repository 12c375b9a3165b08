"""Schema ids before payloads and in headers."""

from __future__ import annotations

import random
from uuid import UUID

import pyarrow as pa
import pytest

from kwire import native
from kwire.schemas.wire_format import (
    COMMON_IDS,
    MAX_INDEXES,
    encode_path,
    last_header,
    payloads,
    read_prefixes,
    schema_ids,
)

GUID = UUID("8f2b3a74-1d5e-4c5f-9b7a-0123456789ab")


@pytest.mark.parametrize("level", [native.LEVEL, None])
def test_the_prefix_is_split_into_schema_id_and_payload(level: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "LEVEL", level)
    values = [
        b"\0\0\0\0\x2apayload",
        b"\1" + GUID.bytes + b"x",
        b"\0\0\0\0",
        b"plain text",
        b"",
        None,
        b"\0\xff\xff\xff\xff",
    ]
    for array in (pa.array(values, pa.binary()), pa.array([b"\0", *values], pa.large_binary()).slice(1)):
        assert schema_ids(array).to_pylist() == ["42", str(GUID), None, None, None, None, "-1"]
        assert payloads(array).to_pylist() == [b"payload", b"x", None, None, None, None, b""]
    assert schema_ids(pa.array([], pa.binary())).to_pylist() == []
    assert payloads(pa.array([], pa.binary())).to_pylist() == []


def test_protobuf_message_indexes_are_skipped() -> None:
    prefix = b"\0\0\0\0\1"
    cases = [
        (b"\0body", b"body"),  # the first message
        (b"\x02\x04body", b"body"),  # [2]
        (b"\x04\x02\x80\x01body", b"body"),  # [1, 64]
        (b"\x04\x02", None),
        (b"\x02\x80", None),
        (b"", None),
        (b"\x01", None),  # -1 indexes
        (b"\xfe\xff\xff\xff\x0f", None),
    ]
    array = pa.array([prefix + data for data, _ in cases], pa.binary())
    assert payloads(array, protobuf=True).to_pylist() == [body for _, body in cases]


def test_a_schema_id_in_a_header_takes_precedence_over_the_prefix() -> None:
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    name = "__value_schema_id"
    headers = pa.array(
        [
            [
                {"key": "a", "value": b"1"},
                {"key": name, "value": b"\0\0\0\0\7"},
                {"key": name, "value": b"\0\0\0\0\x08"},
            ],
            None,
            [],
            [{"key": "__key_schema_id", "value": b"\0\0\0\0\7"}],
            [{"key": name, "value": b"\1" + GUID.bytes}],
            [{"key": name, "value": None}],
        ],
        kind,
    )
    data = pa.array([b"whole", b"\0\0\0\0\1p", b"x", b"\0\0\0\0\2q", None, b"\0\0\0\0\3r"], pa.binary())
    assert schema_ids(data, headers, name).to_pylist() == ["8", "1", None, "2", str(GUID), "3"]
    assert payloads(data, headers, name).to_pylist() == [b"whole", b"p", None, b"q", None, b"r"]
    assert schema_ids(data.slice(3), headers.slice(3), name).to_pylist() == ["2", str(GUID), "3"]
    assert last_header(headers.slice(2, 0), name).to_pylist() == []


def test_message_indexes_are_read_up_to_the_limit() -> None:
    paths = [(0,), (2,), (1, 64), (63, 64, 8191, 8192), tuple(range(MAX_INDEXES)), tuple(range(MAX_INDEXES + 1))]
    data = pa.array([b"\0\0\0\0\1" + encode_path(path) + b"body" for path in paths], pa.binary())
    prefixes = read_prefixes(data)
    known, numbers = prefixes.message_indexes(prefixes.index >= 0)
    assert [known[number] if number >= 0 else None for number in numbers] == [*paths[:-1], None]
    assert payloads(data, protobuf=True).to_pylist() == [b"body"] * (len(paths) - 1) + [None]


def test_an_id_in_the_header_of_a_null_is_not_one_of_the_ids() -> None:
    headers = pa.array(
        [[{"key": "id", "value": b"\0\0\0\0" + bytes([each])}] for each in (7, 9)],
        pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
    )
    prefixes = read_prefixes(pa.array([b"whole", None], pa.binary()), headers, "id")
    assert (prefixes.ids, prefixes.index.tolist(), prefixes.skip.tolist()[0]) == ([7], [0, -1], 0)


def some_values(source: random.Random, ids: int) -> list[bytes | None]:
    """Return values with prefixes of both forms, whole and cut, of up to this many ids; some are null."""
    prefixes = [
        b"\0" + source.randbytes(4) if source.random() < 0.7 else b"\1" + source.randbytes(16) for _ in range(ids)
    ]
    whole = [source.choice(prefixes) + source.randbytes(source.randrange(3)) for _ in range(source.randrange(60 * ids))]
    cut = source.choice((0.0, 0.1))
    return [
        each if source.random() >= cut else source.choice((None, b"", b"\2" + each, each[: source.randrange(18)]))
        for each in whole
    ]


@pytest.mark.parametrize("ids", [1, 2, COMMON_IDS, COMMON_IDS + 1])
def test_compiled_code_finds_the_ids_that_arrow_finds(ids: int, monkeypatch: pytest.MonkeyPatch) -> None:
    source = random.Random(ids)
    uniform = set()
    for _ in range(30):
        values = some_values(source, ids)
        array = pa.array([b"before", *values], source.choice((pa.binary(), pa.large_binary()))).slice(1)
        headers = pa.array(
            [[("id", source.choice(values))] if source.random() < 0.2 else [] for _ in values],
            pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
        )
        for given in (None, headers):
            monkeypatch.undo()
            found = read_prefixes(array, given, "id")
            monkeypatch.setattr(native, "LEVEL", None)
            plain = read_prefixes(array, given, "id")
            assert found.ids == plain.ids
            assert found.index.tolist() == plain.index.tolist()
            assert found.skip.tolist() == plain.skip.tolist()
            assert found.is_uniform == plain.is_uniform
            assert not found.is_uniform or (len(found.ids) == 1 and not found.index.any())
            uniform.add(found.is_uniform)
    assert False in uniform
    assert True in uniform or ids > 1

"""Large schemas: the time they take grows with their size, and what cannot be done in seconds is refused."""

from __future__ import annotations

import json
import time
from typing import Any

import pyarrow as pa
import pytest
from tests.sampling import mostly_slow
from tests.schemas.avro.drawing import written

from kwire.errors import InvalidSchema
from kwire.schemas.avro import Decoder, Encoder, Schema, parse
from kwire.schemas.avro.resolution import MAX_STEPS, Names, Steps

SECONDS = 10
"""Of CPU time, where these sizes take less than one, and half a minute or more when each search is of a whole list."""
Json = Any


def record(name: str, *fields: Json) -> Json:
    return {"type": "record", "name": name, "fields": list(fields)}


def number(name: str, **more: Json) -> Json:
    return {"name": name, "type": "int", **more}


def schema(value: Json, **references: Json) -> Schema:
    return parse(json.dumps(value), {name: json.dumps(each) for name, each in references.items()})


LARGE = {
    "union": [record(f"R{i}", number("a")) for i in range(4_000)],
    "fields": record("R", *(number(f"f{i}") for i in range(30_000))),
    "symbols": {"type": "enum", "name": "E", "symbols": [f"S{i}" for i in range(30_000)]},
}


@pytest.mark.parametrize("name", mostly_slow([*LARGE][::-1], quick=1))
def test_a_large_schema_takes_seconds_and_its_values_are_right(name: str) -> None:
    given = LARGE[name]
    value = {"union": ("R3999", {"a": 1}), "fields": {f"f{i}": i for i in range(30_000)}, "symbols": "S29999"}[name]
    data = written(given, value)
    before = time.process_time()
    parsed = schema(given)
    decoded = Decoder([parsed], parsed).decode(pa.array([data]))
    encoded = Encoder(parsed, decoded.array.type).encode(decoded.array)
    assert time.process_time() - before < SECONDS
    assert not len(decoded.errors)
    found = decoded.array[0].as_py()
    assert (found["member3999"] if name == "union" else found) == (value[1] if name == "union" else value)
    assert encoded.array.to_pylist() == [data]


def test_columns_of_a_wide_record_are_found_in_seconds() -> None:
    parsed = schema(LARGE["fields"])
    before = time.process_time()
    assert Decoder([parsed], parsed, columns=[f"f{i}" for i in range(30_000)]).type.num_fields == 30_000
    assert time.process_time() - before < SECONDS


def test_a_wide_record_is_filled_with_defaults_in_seconds() -> None:
    reader = schema(record("R", *(number(f"f{i}", default=i) for i in range(30_000))))
    before = time.process_time()
    decoder = Decoder([schema(record("R"))], reader)
    assert time.process_time() - before < SECONDS
    assert decoder.decode(pa.array([b""])).array.to_pylist() == [{f"f{i}": i for i in range(30_000)}]


def test_renamed_records_of_a_large_union_are_found_by_their_fields() -> None:
    writer = [record(f"Old{i}", number(f"f{i}")) for i in range(4_000)]
    reader = [record(f"New{i}", number(f"f{i}")) for i in range(4_000)]
    data = written(writer, ("Old3998", {"f3998": 5}))
    before = time.process_time()
    decoded = Decoder([schema(writer)], schema(reader)).decode(pa.array([data]))
    assert time.process_time() - before < SECONDS
    assert decoded.array[0].as_py()["member3998"] == {"f3998": 5}


@pytest.mark.slow
def test_unions_that_only_a_search_of_all_pairs_resolves_are_refused() -> None:
    writer = [record(f"Old{i}", number("id")) for i in range(4_000)]
    reader = [record(f"New{i}", number("id"), number("missing")) for i in range(4_000)]
    before = time.process_time()
    with pytest.raises(InvalidSchema, match="more than 5000000 steps; ask for fewer columns"):
        Decoder([schema(writer)], schema([*reader, record("Last", number("id"))]))
    assert time.process_time() - before < SECONDS


def test_planning_takes_as_many_steps_as_the_limit() -> None:
    steps = Steps()
    steps.take(MAX_STEPS - 1)
    steps.take(1)
    with pytest.raises(InvalidSchema, match="more than 5000000 steps"):
        steps.take(1)


@pytest.mark.sampled
@pytest.mark.parametrize("names", ["any", "strict"])
def test_a_search_of_many_aliases_in_many_fields_is_refused(names: Names) -> None:
    def fields(name: str, *aliases: str) -> Schema:
        kind = {"type": "enum", "name": name, "symbols": ["A"], "aliases": aliases}
        return schema(
            record("R", {"name": "f", "type": kind}, *({"name": f"f{i}", "type": name} for i in range(count)))
        )

    count = 40_000
    before = time.process_time()
    with pytest.raises(InvalidSchema, match="more than 5000000 steps"):
        Decoder([fields("Old")], fields("New", *(f"E{i}" for i in range(count)), "Old"), names=names)
    assert time.process_time() - before < SECONDS
    count = 500
    Decoder([fields("Old")], fields("New", *(f"E{i}" for i in range(count)), "Old"), names=names)


def test_a_default_that_doubles_at_each_level_is_refused() -> None:
    levels = [record("D0", number("a", default=1))]
    for i in range(1, 40):
        part = {"type": f"D{i - 1}", "default": {}}
        levels.append(record(f"D{i}", {"name": "a"} | part, {"name": "b"} | part))
    reader = schema(record("R", {"name": "top", "type": "D39", "default": {}}), levels=levels)
    with pytest.raises(InvalidSchema, match="more than 5000000 steps"):
        Decoder([schema(record("R"))], reader, columns=["top." + ".".join(["a"] * 40)])


@pytest.mark.parametrize("columns", [None, ["deep"], ["id"]])
def test_named_types_that_refer_to_each_other_without_end_are_refused(columns: list[str] | None) -> None:
    chain = [record("R0", number("a"))] + [record(f"R{i}", {"name": "a", "type": f"R{i - 1}"}) for i in range(1, 5_000)]
    writer = schema(record("Top", {"name": "deep", "type": "R4999"}, number("id")), chain=chain)
    with pytest.raises(InvalidSchema, match="nested too deep"):
        Decoder([writer], writer, columns=columns)


def test_a_long_union_is_shortened_in_messages() -> None:
    with pytest.raises(InvalidSchema) as caught:
        Decoder([schema("string")], schema([record(f"R{i}") for i in range(11)]))
    assert str(caught.value).endswith("record R8, record R9 and 1 more")
    assert "more" not in str(schema([record(f"R{i}") for i in range(10)]))


def test_planning_makes_as_many_columns_and_rows_as_the_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    two = schema(record("R", number("id"), number("count")))  # three columns and rows, with the record
    three = schema(record("R", number("id"), number("count"), number("more")))
    for name, what in (("columns.MAX_COLUMNS", "3 columns"), ("plan.MAX_ROWS", "3 rows")):
        with monkeypatch.context() as patch:
            patch.setattr(f"kwire.schemas.avro.{name}", 3)
            Decoder([two], two)
            with pytest.raises(InvalidSchema, match=f"more than {what}"):
                Decoder([three], three)

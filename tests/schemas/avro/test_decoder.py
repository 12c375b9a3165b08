"""Decoded Avro compared with what fastavro wrote."""

from __future__ import annotations

import json
from random import Random

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.schemas.avro.drawing import Drawing, expected, plain, written

from kwire import native
from kwire.schemas.avro import Decoder, parse


@pytest.fixture(params=["kernel", "plain Python"], autouse=True)
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "plain Python":
        monkeypatch.setattr(native, "LEVEL", None)
    elif native.LEVEL is None:
        pytest.skip("without compiled code")


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.randoms(use_true_random=False))
def test_values_of_any_schema_are_what_fastavro_wrote(source: Random) -> None:
    drawing = Drawing(source)
    drawn = drawing.record() if source.random() < 0.7 else drawing.schema()
    values = [drawing.value(drawn) for _ in range(source.randint(0, 4))]
    schema = parse(json.dumps(drawn))
    decoded = Decoder([schema], schema).decode(pa.array([written(drawn, each) for each in values], pa.binary()))
    assert [decoded.errors.message(i) for i in range(len(decoded.errors))] == []
    decoded.array.validate(full=True)
    assert plain(decoded.array) == [expected(drawn, each) for each in values]


@pytest.mark.parametrize(("kind", "unit", "day"), [("int", "millis", 86_400_000), ("long", "micros", 86_400_000_000)])
def test_a_time_of_day_ends_before_24_hours(kind: str, unit: str, day: int) -> None:
    writer, reader = (
        parse(json.dumps({"type": of, "logicalType": f"time-{name}"}))
        for of, name in ((kind, unit), ("long", "micros"))
    )
    values = [written(kind, number) for number in (0, day - 1, day, -1)]
    decoded = Decoder([writer], reader).decode(pa.array(values, pa.binary()))
    assert decoded.array.is_valid().to_pylist() == [True, True, False, False]
    assert len(decoded.errors) == 2

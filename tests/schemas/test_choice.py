"""SchemaChoice and ChosenSchema: what is refused before a registry is asked, and what tasks get of it."""

import json
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.schemas.registry_server import serve

from kwire.errors import OptionError
from kwire.schemas import Registry
from kwire.schemas.choice import SchemaChoice
from kwire.schemas.record_values import ValueDecoding
from kwire.schemas.value_decoder import ValueDecoder
from kwire.spark.registry_columns import decoder_of

NOBODY = "http://127.0.0.1:1"


def record(*fields: str) -> str:
    listed = [{"name": name, "type": "int", "default": 0} for name in fields]
    return json.dumps({"type": "record", "name": "R", "fields": listed})


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"subject": "s", "topic": "t"}, "subject and topic are mutually exclusive"),
        ({"mode": "dropmalformed"}, "mode: expected one of failfast, permissive, deadletter, got 'dropmalformed'"),
        ({"names": "loose"}, "names: expected one of any, strict, got 'loose'"),
    ],
)
def test_bad_options_are_refused_before_a_registry_is_asked(options: dict[str, Any], expected: str) -> None:
    with pytest.raises(OptionError) as caught:
        SchemaChoice(registry=NOBODY, **options)
    assert str(caught.value) == expected


def test_options_without_a_registry_are_refused() -> None:
    assert SchemaChoice.of_options(None, {"subject": None, "mode": None}) is None
    with pytest.raises(OptionError, match=r"^mode: requires registry, whose schemas values are decoded with$"):
        SchemaChoice.of_options(None, {"subject": None, "mode": "failfast"})
    choice = SchemaChoice.of_options(NOBODY, {"subject": "s", "mode": None})
    assert choice == SchemaChoice(registry=NOBODY, subject="s")


def test_the_subject_of_one_topic_is_chosen() -> None:
    choice = SchemaChoice(registry=NOBODY)
    assert choice.of_topics(["t", "t"]).topic == "t"
    assert choice.of_topics(iter(["t"])).topic == "t"
    with pytest.raises(OptionError, match=r"requires one topic or a subject.*the topics: a, t$"):
        choice.of_topics(["t", "a", "t"])
    with pytest.raises(OptionError, match=r"the topics: none$"):
        choice.of_topics([])
    named = SchemaChoice(registry=NOBODY, subject="s")
    assert named.of_topics(["t", "a"]) is named


def test_tasks_share_the_decoder_of_a_choice(tmp_path: Path) -> None:
    (tmp_path / "t-value.1.5.avsc").write_text(record("a"))
    (tmp_path / "t-value.2.6.avsc").write_text(record("a", "b"))
    registry = Registry(tmp_path)
    for schema in ("latest", "union", 5):
        sent = pickle.dumps(SchemaChoice(registry=registry, topic="t", schema=schema).resolve())
        assert decoder_of(pickle.loads(sent)) is decoder_of(pickle.loads(sent))
    first, second = (SchemaChoice(registry=registry, topic="t", schema=each).resolve() for each in (5, 6))
    assert decoder_of(first) is not decoder_of(second)


def test_a_task_decodes_to_the_type_that_the_driver_saw() -> None:
    """A version that is registered meanwhile does not change the columns of a query or table."""
    with serve() as server:
        server.add("t-value", record("a"))
        choice = SchemaChoice(registry=Registry(server.url, retries=0), schema="union", mode="deadletter")
        decoding = ValueDecoding.resolve(choice, ["t"])
        sent = pickle.dumps(decoding)
        server.add("t-value", record("a", "b"))
        in_task = pickle.loads(sent)
        assert in_task.type == decoding.type == pa.struct([("a", pa.int32())])
        assert ValueDecoder(in_task.chosen).type == decoding.type

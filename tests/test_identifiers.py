"""Ids in Kafka's text form."""

from __future__ import annotations

import uuid

import pytest

from kwire.errors import Malformed
from kwire.identifiers import new_uuid, parse_uuid, render_uuid


def test_an_id_round_trips_as_22_base64_characters() -> None:
    one = uuid.UUID(int=1)
    assert render_uuid(one) == "AAAAAAAAAAAAAAAAAAAAAQ"
    assert parse_uuid("AAAAAAAAAAAAAAAAAAAAAQ") == one


@pytest.mark.parametrize(
    "text", ["", "AAAA", "AAAAAAAAAAAAAAAAAAAAA*", "AAAAAAAAAAAAAAAAAAA+/Q", "AAAAAAAAAAAAAAAAAAAAAQAA"]
)
def test_other_text_is_malformed(text: str) -> None:
    with pytest.raises(Malformed, match="is not an id of 22 base64 characters"):
        parse_uuid(text)


def test_a_new_id_is_not_reserved_and_does_not_look_like_an_option() -> None:
    for _ in range(200):
        value = new_uuid()
        assert value.int >= 100
        assert not render_uuid(value).startswith("-")

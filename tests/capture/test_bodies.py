"""Bodies of captured requests and responses: the bytes after the headers."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from kwire.capture import read_capture
from kwire.capture.bodies import bodies_of
from kwire.cli.main import run
from kwire.messages import registry

CAPTURE = Path(__file__).parents[1] / "data" / "captures" / "two-interfaces.pcapng"


def test_bodies_are_the_messages_of_the_exchange() -> None:
    seen = set()
    for exchange in read_capture(CAPTURE):
        found = {cls.__name__: (version, body) for cls, version, body in bodies_of(exchange)}
        expected = {}
        for message, version in (
            (exchange.request_message(), exchange.api_version),
            (exchange.response_message(), exchange.response_version()),
        ):
            if message is not None:
                expected[type(message).__name__] = message
                at, body = found[type(message).__name__]
                assert at == version
                assert registry.get(type(message).__name__).decode(body, version=version) == message
        assert found.keys() == expected.keys()
        seen |= found.keys()
    assert {"ApiVersionsRequest", "ApiVersionsResponse", "MetadataResponse"} <= seen


def test_advice_on_a_capture_is_that_on_its_bodies(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    found = [body for exchange in read_capture(CAPTURE) for body in bodies_of(exchange)]
    lines = [
        json.dumps({"message": cls.__name__, "version": version, "b64": base64.b64encode(body).decode()})
        for cls, version, body in found
    ]
    (tmp_path / "bodies.jsonl").write_text("\n".join(lines))
    shown = []
    for path in (CAPTURE, tmp_path / "bodies.jsonl"):
        assert run(["schema", "advise", "MetadataResponse", "--version", "12", str(path), "--format", "json"]) == 0
        shown.append(json.loads(capsys.readouterr().out))
    assert shown[0] == shown[1]
    assert {row["path"]: row["values"] for row in shown[0]}["brokers[].node_id"] == 3

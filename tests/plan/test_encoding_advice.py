"""Advice on encodings: parts add up to the whole, and what cannot be read is left out and counted."""

from __future__ import annotations

import json
from collections.abc import Iterator

from kwire.messages import MetadataResponse
from kwire.plan.encoding_advice import EncodingTally


def bodies() -> Iterator[tuple[int, bytes]]:
    for n in range(40):
        broker = MetadataResponse.MetadataResponseBroker(node_id=n * n, host="h", port=9092)
        yield 9 + n % 2, MetadataResponse(brokers=[broker], controller_id=-1).encode(version=9 + n % 2)


def test_tallies_of_parts_are_the_tally_of_the_whole() -> None:
    whole, parts = EncodingTally(), [EncodingTally(), EncodingTally(), EncodingTally()]
    for n, (version, body) in enumerate(bodies()):
        whole.add(MetadataResponse.SPEC, version, body)
        parts[n % 3].add(MetadataResponse.SPEC, version, body)
    parts[0].add(MetadataResponse.SPEC, 9, b"\1")
    merged = EncodingTally()
    for part in parts:
        merged.merge_json(json.loads(json.dumps(part.to_json())), {"MetadataResponse": MetadataResponse.SPEC})
    assert list(merged.rows()) == list(whole.rows())
    assert [(each.bodies, each.unreadable) for each in merged.messages.values()] == [(20, 1), (20, 0)]
    ids = {row["version"]: row for row in whole.rows() if row["path"] == "brokers[].node_id"}
    squares = [n * n for n in range(0, 40, 2)]
    assert (ids[9]["smallest"], ids[9]["largest"], ids[9]["bytes"]) == (0, squares[-1], 80)
    assert ids[9]["encodings"]["upacked32"] == sum(1 if n < 128 else 2 for n in squares)

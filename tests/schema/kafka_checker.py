"""Kafka's own checker of definitions (MetadataSchemaCheckerTool), run from its jars, and its recorded results.

`python -m tests.schema.kafka_checker` records its results for the cases of test_evolution_like_kafka and for random
pairs. 4.0.0 is the first release whose jar has the checker. Since 4.1.1 each definition has its own registry of structs
(T-19), so later releases check more of definitions with structs.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import NamedTuple

from hypothesis import HealthCheck, given, settings
from tests import golden
from tests.schema.evolving import wild_steps
from tools import kafka

__all__ = ["RELEASES", "Recorded", "compact", "recorded", "responses"]

RELEASES = ("4.0.0", "4.3.1")
RECORDING = "evolution.jsonl.gz"
PEER = Path(__file__).parent / "java" / "CheckerPeer.java"
DRAWN_PAIRS = 600
NEVER_ENDS = "never ends"
MOST_ENDLESS = 2  # each costs the time after which it counts as endless

Pair = tuple[str, str]


class Recorded(NamedTuple):
    """Two definitions, and the result of the checker of each of RELEASES for the change from old to new."""

    old: str
    new: str
    responses: dict[str, str]


def responses(pairs: list[Pair], release: str) -> list[str]:
    """Return the result of Kafka's checker: "passes", "refused: why" or "never ends"."""
    jars = kafka.generator_jars(release)
    classes = kafka.compile_java(PEER, folder=jars)
    asked = "".join(json.dumps(pair) + "\n" for pair in pairs)
    return kafka.java("CheckerPeer", folder=jars, classes=classes, text=asked).splitlines()


def recorded() -> list[Recorded]:
    """Return the recorded results, in order."""
    return [Recorded(line["old"], line["new"], line["answers"]) for line in golden.cached(RECORDING)]


def drawn_pairs() -> list[Pair]:
    """Return fixed random pairs of definitions, each several changes apart."""
    found: list[Pair] = []

    @settings(max_examples=DRAWN_PAIRS, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(wild_steps())
    def draw(pair: Pair) -> None:
        found.append(pair)

    draw()
    return found


def compact(definition: str) -> str:
    return json.dumps(json.loads(definition))


def main() -> None:
    from tests.schema.test_evolution_like_kafka import CASES

    pairs = list(dict.fromkeys((compact(old), compact(new)) for old, new in [*CASES, *drawn_pairs()]))
    columns = [responses(pairs, release) for release in RELEASES]
    endless = 0
    with gzip.GzipFile(golden.DATA / RECORDING, "wb", mtime=0) as out:
        for (old, new), *said in zip(pairs, *columns, strict=True):
            if any(each.startswith("no definition") for each in said):  # of a kind that Kafka's generator does not know
                continue
            endless += NEVER_ENDS in said
            if NEVER_ENDS not in said or endless <= MOST_ENDLESS:
                line = {"old": old, "new": new, "answers": dict(zip(RELEASES, said, strict=True))}
                out.write(json.dumps(line).encode() + b"\n")


if __name__ == "__main__":
    main()

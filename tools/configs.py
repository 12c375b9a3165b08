"""Kafka's config definitions as facts: src/kwire/broker/config_facts.tsv, from the classes of Kafka 4.4.0.

python tools/configs.py     (needs a JDK and Maven)

A line is a config: resource, name, type, default (`\\N` for null), limits as Kafka prints them, who may change it
while a broker runs, and whether it is internal.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # `python tools/configs.py` adds only tools/

from tools import kafka  # noqa: E402

RELEASE = "4.4.0"
FACTS = ROOT / "src" / "kwire" / "broker" / "config_facts.tsv"


def main() -> None:
    """Write the file."""
    classes = kafka.compile_java(ROOT / "tools" / "java" / "ConfigFacts.java", version=RELEASE)
    FACTS.write_text(kafka.java("ConfigFacts", version=RELEASE, classes=classes), encoding="utf-8")


if __name__ == "__main__":
    main()

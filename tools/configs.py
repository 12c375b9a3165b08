"""Kafka's config definitions as facts, from the classes of Kafka 4.4.0, beside kwire.broker.configs.definitions.

python tools/configs.py     (needs a JDK and Maven)

    config_facts.tsv               a config each line: resource, name, type, default (`\\N` for null), limits as Kafka
                                   prints them, who may change it while a broker runs, and whether it is internal
    config_documentation.tsv.gz    a text each line: the configs that it is about (resource and name), the text
"""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # `python tools/configs.py` adds only tools/

from tools import kafka  # noqa: E402

RELEASE = "4.4.0"
FACTS = ROOT / "src" / "kwire" / "broker" / "configs" / "config_facts.tsv"
DOCUMENTATION = FACTS.with_name("config_documentation.tsv.gz")


def main() -> None:
    """Write the files."""
    classes = kafka.compile_java(ROOT / "tools" / "java" / "ConfigFacts.java", version=RELEASE)
    FACTS.write_text(kafka.java("ConfigFacts", version=RELEASE, classes=classes), encoding="utf-8")
    texts: dict[str, list[str]] = {}
    for line in kafka.java("ConfigFacts", "documentation", version=RELEASE, classes=classes).splitlines():
        resource, name, text = line.split("\t", 2)
        texts.setdefault(text, []).append(f"{resource} {name}")
    lines = "".join(f"{' '.join(names)}\t{text}\n" for text, names in texts.items())
    DOCUMENTATION.write_bytes(gzip.compress(lines.encode(), mtime=0))


if __name__ == "__main__":
    main()

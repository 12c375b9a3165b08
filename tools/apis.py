"""Generate docs/apis.md: the APIs that the broker serves, from kwire.broker.apis.SERVED and the handlers' docstrings.

A handler's docstring begins with `Name (api key N), versions A to B: purpose.`. An indented block says what each
version added; the other paragraphs describe the behaviour of the broker.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from pathlib import Path
from typing import Any

from kwire.broker.apis import SERVED, Api
from kwire.messages import registry

PAGE = Path(__file__).parents[1] / "docs" / "apis.md"

HEAD = """# Broker APIs
The APIs and versions that the broker serves, as its ApiVersions response lists them. Tests send every version of every
API. Errors are Kafka's: the same error code in the same field. A request for any other API or version closes the
connection, as in Kafka; clients send ApiVersions first and use the versions it lists.

This page is generated from the handlers by `./dev generate`.

| key | API | versions | Kafka 4.4.0 | purpose |
| --- | --- | --- | --- | --- |
"""
KAFKA = "4.4.0"
COMPARED = """
## Compared with Kafka 4.4.0
The broker lists every API that a Kafka 4.4.0 node with default settings lists, up to the same versions. It refuses what
that node refuses: APIs between brokers and controllers, and versions that are not listed, close the connection.

| difference | reason |
| --- | --- |
| {lower} begin with version 0 | older clients; Kafka 4 removed these versions (KIP-896) |
| Produce 0 to 2 are served; Kafka lists and refuses them | older clients and records |
| GetTelemetrySubscriptions and PushTelemetry are listed while there is a client metrics subscription | Kafka needs a \
plugin that receives metrics; here they are in the request log |
| UnregisterBroker refuses the running broker | Kafka would leave it without partitions until it is killed |

InitProducerId 6 is unstable in Kafka 4.4: as there, only `unstable.api.versions.enable=true` makes it served. Features
differ too: a new broker has those of Kafka 3.9, with `transaction.version` and `share.version`, see
[Features](broker.md#features). Streams groups are refused as by a Kafka 4.4.0 whose `streams.version` is 0.

Messages have the limits of Kafka 4.4.0: 1,000,000 elements in an array, 10,000 tagged fields in a struct. A request
beyond them closes the connection.

`tests/broker/test_api_outcomes.py` sends about 140 requests of all APIs to the broker and compares the outcomes with
those recorded of Kafka 4.4.0; `tests/interop/test_apis_like_kafka.py` compares the records with a running one.
"""


def requests() -> dict[str, Any]:
    """Return the requests that clients may send to a broker, by API name."""
    found = {}
    for name in registry.names():
        cls = registry.get(name)
        if cls.SPEC.kind == "request" and "broker" in cls.SPEC.listeners:
            found[name.removesuffix("Request")] = cls
    return found


def kafka_versions() -> dict[int, tuple[int, int]]:
    """Return the versions that Kafka 4.4.0 serves to clients, by API key."""
    names = registry.names(kafka=KAFKA)
    found = {}
    for cls in (registry.get(name, kafka=KAFKA) for name in names):
        if cls.SPEC.kind == "request" and "broker" in cls.SPEC.listeners and cls.API_KEY is not None:
            found[cls.API_KEY] = cls.SPEC.stable.lowest, cls.SPEC.stable.highest
    return found


def in_words(lowest: int, highest: int) -> str:
    """Return a range of versions as text."""
    return str(lowest) if lowest == highest else f"{lowest}-{highest}"


def paragraphs(api: Api) -> list[str]:
    """Return the parts of a handler's docstring: versions as a list, tables unchanged, paragraphs as one line."""
    text = inspect.getdoc(importlib.import_module(f"kwire.broker.apis.{api.module}")) or ""
    parts = text.split("\n\n")
    return [
        version_list(part) if re.match(r" +\d", part) else part if part.startswith(" ") else " ".join(part.split())
        for part in parts
    ]


def version_list(block: str) -> str:
    """Return an indented block such as `1  rack    2  cluster id` as a list with one item per version."""
    text = re.sub(r"\n +(?![\d, ]+  )", " ", block.strip())  # an item may continue on the next line
    items = re.split(r" {3,}|\n *", text)
    return "\n".join(f"- {versions}: {added}" for versions, _, added in (item.partition("  ") for item in items))


def page() -> str:
    """Return the text of the page."""
    known, kafka = requests(), kafka_versions()
    by_key = {cls.API_KEY: name for name, cls in known.items()}
    table, details = "", ""
    for key, api in SERVED.items():
        name, parts = by_key[key], paragraphs(api)
        purpose = parts[0].partition(": ")[2].rstrip(".") or parts[0]
        versions, theirs = in_words(api.lowest, api.highest), in_words(*kafka[key])
        table += f"| {key} | [{name}](#{name.lower()}) | {versions} | {theirs} | {purpose} |\n"
        details += f"\n### {name}\n" + "\n\n".join(parts) + "\n"
    assert kafka.keys() == SERVED.keys()
    lower = [by_key[key] for key, api in SERVED.items() if api.lowest < kafka[key][0] and by_key[key] != "Produce"]
    compared = COMPARED.format(lower=", ".join(lower))
    return f"{HEAD}{table}{compared}\n{refused()}\n## Versions and behaviour\n{details}"


def refused() -> str:
    """Return the section about APIs that close the connection."""
    text = "## Refused\n| key | API | reason |\n| --- | --- | --- |\n"
    newest = set(registry.names(kafka=KAFKA))
    names = sorted(registry.names(), key=lambda name: name in newest)  # of several names of an API, the newest
    classes = {cls.API_KEY: cls for cls in map(registry.get, names) if cls.SPEC.kind == "request"}
    for key, cls in sorted((key, cls) for key, cls in classes.items() if key is not None and key not in SERVED):
        reason = "between brokers and controllers" if cls.__name__ in newest else "removed in Kafka 4"
        text += f"| {key} | {cls.__name__.removesuffix('Request')} | {reason} |\n"
    return text


def main(*, check: bool) -> bool:
    """Write the page, or return whether it is up to date."""
    text = page()
    if check:
        return PAGE.exists() and PAGE.read_text(encoding="utf-8") == text
    PAGE.write_text(text, encoding="utf-8")
    return True


if __name__ == "__main__":
    sys.exit(not main(check="--check" in sys.argv[1:]))

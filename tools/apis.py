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

| key | API | versions | newest in Kafka | purpose |
| --- | --- | --- | --- | --- |
"""
# Why an API that clients may send is not served.
REASONS = {
    "Streams": "streams groups are not supported",
    "RaftVoter": "the broker is a single node",
    "UnregisterController": "the broker is a single node",
}


def requests() -> dict[str, Any]:
    """Return the requests that clients may send to a broker, by API name."""
    found = {}
    for name in registry.names():
        cls = registry.get(name)
        if cls.SPEC.kind == "request" and "broker" in cls.SPEC.listeners:
            found[name.removesuffix("Request")] = cls
    return found


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
    known = requests()
    by_key = {cls.API_KEY: name for name, cls in known.items()}
    table, details = "", ""
    for key, api in SERVED.items():
        name, parts = by_key[key], paragraphs(api)
        purpose = parts[0].partition(": ")[2].rstrip(".") or parts[0]
        newest = known[name].VALID_VERSIONS.highest
        versions = str(api.lowest) if api.lowest == api.highest else f"{api.lowest}-{api.highest}"
        table += f"| {key} | [{name}](#{name.lower()}) | {versions} | {newest} | {purpose} |\n"
        details += f"\n### {name}\n" + "\n\n".join(parts) + "\n"
    missing = ""
    for name, cls in sorted(known.items()):
        if cls.API_KEY not in SERVED:
            reason = next((text for part, text in REASONS.items() if part in name), "used between brokers only")
            missing += f"| {cls.API_KEY} | {name} | {reason} |\n"
    return (
        f"{HEAD}{table}\n## Not supported\n| key | API | reason |\n| --- | --- | --- |\n{missing}\n"
        f"## Versions and behaviour\n{details}"
    )


def main(*, check: bool) -> bool:
    """Write the page, or return whether it is up to date."""
    text = page()
    if check:
        return PAGE.exists() and PAGE.read_text(encoding="utf-8") == text
    PAGE.write_text(text, encoding="utf-8")
    return True


if __name__ == "__main__":
    sys.exit(not main(check="--check" in sys.argv[1:]))

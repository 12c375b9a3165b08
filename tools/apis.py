"""docs/apis.md: which API the broker serves in which versions, from the handlers' own heads.

A handler's docstring begins with `Name (api key N), versions A to B: what it is for.`; a block of indented lines says
what each version added; what follows is the behaviour kept.
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from types import ModuleType

from kwire.broker import apis
from kwire.messages import registry

PAGE = Path(__file__).parents[1] / "docs" / "apis.md"

HEAD = """# APIs of the broker
Generated from the handlers by `./dev generate`. "Versions" are those that ApiVersions offers; requests in all of them
are tested. An API or version that is not here ends the connection, as Kafka does it; clients ask first and use what
there is. An error is Kafka's: the same code in the same place.

| key | API | versions | Kafka's newest | for |
| --- | --- | --- | --- | --- |
"""
# Why an API that clients may send is not served.
REASONS = {
    "Share": "share groups are not kept",
    "Streams": "streams groups are not kept",
    "RaftVoter": "there is one node",
    "Unregister": "there is one node",
    "UpdateFeatures": "features are settings: transaction_version",
}


def requests() -> dict[str, type]:
    """The requests of the catalogue that clients may send to a broker, by name without `Request`."""
    found = {}
    for name in registry.names():
        cls = registry.get(name)
        if cls.SPEC.kind == "request" and "broker" in cls.SPEC.listeners:
            found[name.removesuffix("Request")] = cls
    return found


def paragraphs(module: ModuleType) -> list[str]:
    """A handler's docstring, paragraph by paragraph, its lines joined."""
    text = inspect.getdoc(module) or ""
    return [" ".join(line.strip() for line in part.splitlines()) for part in text.split("\n\n")]


def versions(lowest: int, highest: int) -> str:
    return str(lowest) if lowest == highest else f"{lowest}-{highest}"


def page() -> str:
    """The whole page."""
    known, served = requests(), apis.handlers()
    by_key = {cls.API_KEY: name for name, cls in known.items()}
    table, details = "", ""
    for key, module in served.items():
        name, parts = by_key[key], paragraphs(module)
        purpose = parts[0].partition(": ")[2].rstrip(".") or parts[0]
        newest = known[name].VALID_VERSIONS.highest
        table += f"| {key} | [{name}](#{name.lower()}) | {versions(*module.VERSIONS)} | {newest} | {purpose} |\n"
        details += f"\n### {name}\n" + "\n\n".join(parts) + "\n"
    missing = ""
    for name, cls in sorted(known.items()):
        if cls.API_KEY not in served:
            reason = next((text for part, text in REASONS.items() if part in name), "for brokers among themselves")
            missing += f"| {cls.API_KEY} | {name} | {reason} |\n"
    return (
        f"{HEAD}{table}\n## Not served\n| key | API | why |\n| --- | --- | --- |\n{missing}\n"
        f"## What each version added, and what is kept\n{details}"
    )


def main(*, check: bool) -> bool:
    """Write the page, or say whether it is fresh."""
    text = page()
    if check:
        return PAGE.exists() and PAGE.read_text(encoding="utf-8") == text
    PAGE.write_text(text, encoding="utf-8")
    return True


if __name__ == "__main__":
    sys.exit(not main(check="--check" in sys.argv[1:]))

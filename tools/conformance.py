"""Record what real Kafka does in each check of `kwire conformance broker`.

    python -m tools.conformance versions           src/kwire/conformance/broker/api_versions.json, from the definitions
    python -m tools.conformance record             baseline.jsonl, on Kafka 2.8.2, 3.9.1 and 4.4.0, each started here
    python -m tools.conformance record --at 4.4.0=127.0.0.1:9092 --only FETCH      with a broker that runs already

Each check is observed twice; an observation that differs between the two is an error of the check.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kwire.client.settings import ClientSettings
from kwire.conformance.broker import baseline as baselines
from kwire.conformance.broker.bench import Bench, Session
from kwire.conformance.broker.checks import BrokerCheck
from kwire.conformance.broker.runner import observe
from kwire.conformance.check import select
from kwire.messages import registry
from kwire.protocol.versions import supported
from tools import kafka

FOLDER = Path(baselines.__file__).parent


def main(arguments: list[str]) -> int:
    """Return 1 if an observation differs between two runs."""
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["versions", "record"])
    parser.add_argument("--at", action="append", default=[], metavar="RELEASE=HOST:PORT")
    parser.add_argument("--only", action="append", default=[])
    options = parser.parse_args(arguments)
    if options.what == "versions":
        (FOLDER / "api_versions.json").write_text(versions_text())
        return 0
    from kwire.conformance.broker.chapters import all_checks

    checks = select(all_checks(), options.only, [])
    recorded = _former()
    given = dict(text.split("=", 1) for text in options.at)
    unstable = 0
    for release in given or baselines.RELEASES:
        with _broker(release, given) as address:
            unstable += _record(release, address, checks, recorded)
    text = baselines.render_baseline(recorded, [check.id for check in all_checks()])
    (FOLDER / baselines.FILE).write_text(text)
    print(f"{len(text.splitlines())} checks recorded, {unstable} not stable")
    return int(unstable > 0)


def versions_text() -> str:
    """Return the stable versions of each API by minor release, where they change."""
    table: dict[str, dict[str, list[int]]] = {}
    newest = {release.rpartition(".")[0]: release for release in reversed(registry.RELEASES)}
    for minor in sorted(newest, key=lambda name: tuple(map(int, name.split(".")))):
        for key, versions in supported(newest[minor]).items():
            api = registry.request(key).__name__.removesuffix("Request")
            table.setdefault(api, {})[minor] = [versions.lowest, versions.highest]
    lines = ",\n".join(f" {json.dumps(api)}: {json.dumps(ranges)}" for api, ranges in sorted(table.items()))
    return f"{{\n{lines}\n}}\n"


def _former() -> dict[str, dict[str, Any]]:
    try:
        return {check_id: dict(by) for check_id, by in baselines.read_baseline("4.4.0").recorded.items()}
    except FileNotFoundError:
        return {}


@contextmanager
def _broker(release: str, given: dict[str, str]) -> Iterator[str]:
    if release in given:
        yield given[release]
        return
    with tempfile.TemporaryDirectory() as folder, kafka.KafkaBroker(Path(folder), version=release) as broker:
        yield broker.bootstrap_servers


def _record(release: str, address: str, checks: list[BrokerCheck], recorded: dict[str, dict[str, Any]]) -> int:
    host, _, port = address.rpartition(":")
    passes = []
    for _ in range(2):
        session = Session([(host, int(port))], ClientSettings.parse({"bootstrap.servers": address}))
        session.learn_versions()
        try:
            passes.append({check.id: _observed(session, check) for check in checks})
        finally:
            left = session.clean_up()
            if left:
                print(f"{release}: left {left}", file=sys.stderr)
    unstable = 0
    for check in checks:
        first, second = passes[0][check.id], passes[1][check.id]
        recorded.setdefault(check.id, {}).pop(release, None)
        if first != second:
            unstable += 1
            print(f"{release} {check.id}: not stable\n  {first}\n  {second}", file=sys.stderr)
        elif first is not MISSING:
            recorded[check.id][release] = first
    return unstable


MISSING = object()


def _observed(session: Session, check: BrokerCheck) -> Any:
    if not all(session.serves(api, version) for api, version in check.uses.items()):
        return MISSING
    if any(session.lacks(need) for need in check.needs):
        return MISSING
    bench = Bench(session, check.id)
    try:
        return observe(check, bench)
    except Exception as error:
        print(f"{check.id}: {type(error).__name__}: {error}", file=sys.stderr)
        return f"{type(error).__name__}: {error}"
    finally:
        bench.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

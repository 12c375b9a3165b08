"""Record what real Kafka does in each check of `kwire conformance broker`.

    python -m tools.conformance versions           src/kwire/conformance/broker/api_versions.json, from the definitions
    python -m tools.conformance record             baseline.jsonl, on Kafka 2.8.2, 3.9.1 and 4.4.0, each started here
    python -m tools.conformance record --at 4.4.0=127.0.0.1:9092 --only FETCH      with a broker that runs already

Two brokers of each release are started: one with the defaults, and one with SASL (PLAIN and SCRAM), an authorizer and a
receiver of telemetry, for the checks that the first one lacks something for. Each check is observed twice; an
observation that differs between the two is an error of the check.
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
from kwire.conformance.broker.needs import lacks
from kwire.conformance.broker.runner import observe
from kwire.conformance.check import release_order, select
from kwire.messages import registry
from kwire.protocol.versions import supported
from tools import kafka

FOLDER = Path(baselines.__file__).parent
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
MECHANISMS = ("scram-sha-256", "scram-sha-512")
AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
ZOOKEEPER_AUTHORIZER = "kafka.security.authorizer.AclAuthorizer"
RECEIVER, TELEMETRY_SINCE = "TelemetryReceiver", (3, 7)
CREDENTIALS = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "admin",
    "sasl.password": "admin-secret",
}

Configs = dict[str, str]


def main(arguments: list[str]) -> int:
    """Return 1 if an observation differs between two runs."""
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["versions", "record"])
    parser.add_argument("--at", action="append", default=[], metavar="RELEASE=HOST:PORT")
    parser.add_argument("--config", action="append", default=[], metavar="NAME=VALUE", help="of a client, with --at")
    parser.add_argument("--only", action="append", default=[])
    options = parser.parse_args(arguments)
    if options.what == "versions":
        (FOLDER / "api_versions.json").write_text(versions_text())
        return 0
    from kwire.conformance.broker.chapters import all_checks

    checks = select(all_checks(), options.only, [])
    recorded = _former()
    given = dict(text.split("=", 1) for text in options.at)
    configs = dict(text.split("=", 1) for text in options.config)
    unstable = 0
    for release in given or baselines.RELEASES:
        for check in checks:
            recorded.setdefault(check.id, {}).pop(release, None)
        remaining = checks
        for broker in [_given(given[release], configs)] if given else [_plain(release), _secured(release)]:
            with broker as client_configs:
                found = _record(release, client_configs, remaining, recorded)
            remaining = [check for check in remaining if check.id not in found]
            unstable += list(found.values()).count(UNSTABLE)
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
def _given(address: str, configs: Configs) -> Iterator[Configs]:
    yield {"bootstrap.servers": address, **configs}


@contextmanager
def _plain(release: str) -> Iterator[Configs]:
    with tempfile.TemporaryDirectory() as folder, kafka.KafkaBroker(Path(folder), version=release) as broker:
        yield {"bootstrap.servers": broker.bootstrap_servers}


@contextmanager
def _secured(release: str) -> Iterator[Configs]:
    with tempfile.TemporaryDirectory() as folder, secured(Path(folder), release) as broker:
        yield {"bootstrap.servers": broker.bootstrap_servers, **CREDENTIALS}


def secured(folder: Path, release: str) -> kafka.KafkaBroker:
    """Return a broker with SASL, an authorizer, and a receiver of telemetry if the release has telemetry."""
    broker = kafka.KafkaBroker(folder, version=release)
    before, *controller = str(broker.settings["listeners"]).split(",")
    listener = before.replace("PLAINTEXT", "SASL_PLAINTEXT")
    user, password = CREDENTIALS["sasl.username"], CREDENTIALS["sasl.password"]
    login = f'{PLAIN} required username="{user}" password="{password}" user_{user}="{password}";'
    broker.settings |= {
        "listeners": ",".join([listener, *controller]),
        "advertised.listeners": listener,
        "listener.security.protocol.map": "SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "security.inter.broker.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": login,
        **{f"listener.name.sasl_plaintext.{each}.sasl.jaas.config": f"{SCRAM} required;" for each in MECHANISMS},
        "authorizer.class.name": ZOOKEEPER_AUTHORIZER if broker.with_zookeeper else AUTHORIZER,
        "super.users": f"User:{user};User:ANONYMOUS",  # the broker itself, on the controller's listener
    }
    if release_order(release) >= TELEMETRY_SINCE:
        source, folder = kafka.ROOT / "tools" / "java" / f"{RECEIVER}.java", kafka.BUILD / f"telemetry-{release}"
        broker.classes = kafka.compile_java(source, version=release, into=folder)
        broker.settings["metric.reporters"] = RECEIVER
    return broker


def _record(
    release: str, configs: Configs, checks: list[BrokerCheck], recorded: dict[str, dict[str, Any]]
) -> dict[str, Any]:
    """Observe each check twice. Returns the observations that there are by id, UNSTABLE for one that differs."""
    host, _, port = configs["bootstrap.servers"].rpartition(":")
    passes = []
    for _ in range(2):
        session = Session([(host, int(port))], ClientSettings.parse(configs))
        session.learn_versions()
        try:
            passes.append({check.id: _observed(session, check) for check in checks})
        finally:
            left = session.clean_up()
            if left:
                print(f"{release}: left {left}", file=sys.stderr)
    found: dict[str, Any] = {}
    for check_id, first in passes[0].items():
        second = passes[1][check_id]
        if first != second:
            print(f"{release} {check_id}: not stable\n  {first}\n  {second}", file=sys.stderr)
            found[check_id] = UNSTABLE
        elif first is not MISSING:
            found[check_id] = recorded[check_id][release] = first
    return found


MISSING, UNSTABLE = object(), object()


def _observed(session: Session, check: BrokerCheck) -> Any:
    if not all(session.serves(api, version) for api, version in check.uses.items()):
        return MISSING
    if any(lacks(session, need) for need in check.needs):
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

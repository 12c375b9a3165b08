"""What real Kafka did in each check, and the verdict on a broker that is compared with it.

`baseline.jsonl` has a line for each check: its id, and what was observed, by the releases that agree. A release is
missing where it does not serve what the check needs. `./dev conformance record` makes the file again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib import resources
from typing import Any, NamedTuple

from kwire.conformance.broker.checks import BrokerCheck
from kwire.conformance.broker.requests import flat
from kwire.conformance.check import Verdict, in_range, release_order
from kwire.errors import OptionError

__all__ = ["RELEASES", "Baseline", "Judgement", "read_baseline", "render_baseline"]

RELEASES = ("2.8.2", "3.9.1", "4.4.0")
"""The recorded releases, oldest first."""
FILE = "baseline.jsonl"
MAX_NAMED = 3  # differences in a reason
NOTHING = object()
ORDER = (Verdict.PASS, Verdict.DEVIATION, Verdict.FAIL)


class Judgement(NamedTuple):
    """A verdict with its reason, and what was expected."""

    verdict: Verdict
    reason: str = ""
    expected: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """The observations of one release. recorded: by check id and release."""

    release: str
    recorded: Mapping[str, Mapping[str, Any]]

    def has(self, check_id: str) -> bool:
        """Whether the release itself was observed in a check."""
        return self.release in self.recorded.get(check_id, {})

    def source(self, check_id: str) -> str | None:
        """Return the release to compare a check with: this one, or the newest before it; None if there is none."""
        order = release_order(self.release)
        recorded = [each for each in self.recorded.get(check_id, {}) if release_order(each) <= order]
        return max(recorded, key=release_order, default=None)

    def judge(self, check: BrokerCheck, observed: Any) -> Judgement:
        """Compare what was observed with the release, or with an older one for what the release no longer has."""
        sources = self._sources(check)
        if not sources:
            return Judgement(Verdict.NOT_APPLICABLE, f"Kafka {self.release} does not have this")
        judgements = [self._compare(check, source, observed) for source in sources]
        return min(judgements, key=lambda each: ORDER.index(each.verdict))

    def _sources(self, check: BrokerCheck) -> list[str]:
        """Return the releases to compare with: this one, and the newest older one if the check is not about this."""
        newest = self.source(check.id)
        if newest is None or in_range(check, self.release):
            return [] if newest is None else [newest]
        older = [each for each in self.recorded[check.id] if in_range(check, each)]
        return list(dict.fromkeys([newest, *sorted(older, key=release_order)[-1:]]))

    def _compare(self, check: BrokerCheck, source: str, observed: Any) -> Judgement:
        expected = self.recorded[check.id][source]
        older = "" if source == self.release else f"compared with Kafka {source}: {self.release} no longer has this"
        wanted, got = flat(expected), flat(observed)
        paths = [path for path in {**wanted, **got} if wanted.get(path, NOTHING) != got.get(path, NOTHING)]
        if not paths:
            return Judgement(Verdict.PASS, older, expected)
        reasons = [_allowed(check, path, got.get(path)) for path in paths]
        if all(reasons):
            return Judgement(Verdict.DEVIATION, "; ".join(dict.fromkeys(filter(None, reasons))), expected)
        named = [f"{_at(path)}expected {_json(wanted, path)}, got {_json(got, path)}" for path in paths[:MAX_NAMED]]
        more = f"; and {len(paths) - MAX_NAMED} more" if len(paths) > MAX_NAMED else ""
        return Judgement(Verdict.FAIL, "; ".join(named) + more + (f" ({older})" if older else ""), expected)


def _allowed(check: BrokerCheck, path: str, value: Any) -> str | None:
    for each in check.allowed:
        if fnmatchcase(path, each.path) and (each.values is None or value in each.values):
            return each.reason
    return None


def _at(path: str) -> str:
    return f"{path}: " if path else ""


def _json(values: Mapping[str, Any], path: str) -> str:
    return json.dumps(values[path], ensure_ascii=False) if path in values else "nothing"


def read_baseline(release: str) -> Baseline:
    """Return the baseline of a release such as "4.4" or "4.4.0". Raises OptionError for one that was not recorded."""
    matches = [each for each in RELEASES if each == release or each.rpartition(".")[0] == release]
    if not matches:
        raise OptionError(f"--release {release}: not recorded; available: {', '.join(RELEASES)}")
    text = resources.files(__package__).joinpath(FILE).read_text("utf-8")
    return Baseline(release=matches[0], recorded=dict(map(_entry, text.splitlines())))


def _entry(line: str) -> tuple[str, dict[str, Any]]:
    obj = json.loads(line)
    observed = {release: value for releases, value in obj["observed"] for release in releases.split()}
    return obj["id"], observed


def render_baseline(recorded: Mapping[str, Mapping[str, Any]], order: Iterable[str]) -> str:
    """Return the text of the file. recorded: by check id and release. order: of the ids."""
    lines = []
    for check_id in order:
        groups: list[tuple[list[str], Any]] = []
        for release in RELEASES:
            if release in recorded.get(check_id, {}):
                value = recorded[check_id][release]
                same = next((group for group in groups if group[1] == value), None)
                if same is None:
                    groups.append(([release], value))
                else:
                    same[0].append(release)
        if groups:
            observed = [[" ".join(releases), value] for releases, value in groups]
            lines.append(json.dumps({"id": check_id, "observed": observed}, separators=(",", ":")))
    return "\n".join(lines) + "\n"

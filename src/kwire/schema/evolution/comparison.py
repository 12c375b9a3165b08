"""Compare two definitions by the rules of KIP-482, KIP-625 and the README of Kafka's definitions.

    released versions   the old definition's, less the highest if it is unstable; in them the wire is frozen
    unstable version    may change freely
    new version         may change freely, but a field keeps its type, default, order and tag

Each check compares the wire form in the versions of both definitions. Notation makes no difference: renamed fields,
inline structs made common, `0+` and `0-4`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kwire.schema.evolution.field_changes import FREEZE, FieldChanges
from kwire.schema.evolution.field_matching import FieldMatcher, FieldPair, longest_increasing
from kwire.schema.evolution.findings import Finding, Violation
from kwire.schema.evolution.released import Released, struct_paths
from kwire.schema.evolution.report import Report, versions_are
from kwire.schema.evolution.tags import TagUse, UsedTags
from kwire.schema.model import STRUCT_DEFAULTS, Field, Message, Struct
from kwire.schema.versions import NONE, Versions


def compare(
    old: Message,
    new: Message,
    *,
    released: Versions | None = None,
    history: Iterable[Message] = (),
    like_kafka: bool = False,
) -> list[Violation]:
    """List all violations in a change from old to new.

    released: the frozen versions of old; by default all but an unstable highest one. A response does not declare
    unstable versions, so pass the request's `stable` when comparing both.
    history: older definitions, whose tags no other field may use (V-43).
    like_kafka: report what Kafka's own checker reports; docs/evolution.md lists the differences.
    """
    if like_kafka:
        from kwire.schema.evolution.kafka_checker import kafka_violations

        return kafka_violations(old, new)
    findings = review(old, new, released=released, history=history)
    return [finding for finding in findings if isinstance(finding, Violation)]


def review(
    old: Message, new: Message, *, released: Versions | None = None, history: Iterable[Message] = ()
) -> list[Finding]:
    """Compare as `compare` does, with notes on allowed changes worth a review."""
    offered = old.stable if released is None else released.intersect(old.valid)
    comparison = _Comparison(old, new, offered, UsedTags(history))
    comparison.message()
    return comparison.report.findings


class _Comparison:
    def __init__(self, old: Message, new: Message, offered: Versions, used_tags: UsedTags) -> None:
        self.old, self.new, self.offered, self.used_tags = old, new, offered, used_tags
        # Since Kafka 4.0 the former version of a coordinator's key is its apiKey, so the two share no version.
        self.renumbered = old.kind == "data" and new.kind == "coordinator-key"
        self.released = Released(NONE if self.renumbered else offered.intersect(new.valid), old, new)
        self.report = Report(self.released)
        self.matcher = FieldMatcher(old, new, self.released)
        self.fields = FieldChanges(old, new, self.report, self.matcher.forms)
        self.done: set[tuple[Struct, Struct, int, int, Versions]] = set()

    # The message

    def message(self) -> None:
        """Compare the messages, then their structs."""
        old, new, name, violation = self.old, self.new, self.new.name, self.report.violation
        coordinator = old.kind == "data" and new.kind.startswith("coordinator-")
        if coordinator:
            what = f"a data message with versions {old.valid} becomes a {new.kind} with apiKey {_key(new)}"
            advice = "the number before a key in the log must stay the same; if it does, --allow V-02"
            violation("V-02", name, what, advice)
        elif old.kind != new.kind:
            violation("V-02", name, f"a {old.kind} becomes a {new.kind}", "give the new kind another name")
        if old.api_key != new.api_key and not coordinator:
            what = f"apiKey {_key(old)} becomes {_key(new)}"
            violation("V-01", name, what, "keep it: peers and logs identify the message by it")
        if old.name != new.name:
            violation("V-10", name, f"renamed from {old.name}", "keep the name")
        if not self.renumbered:
            self.valid_versions()
        self.flexible_versions()
        for where, what, versions in _dead_ranges(new, old):
            advice = f"the message has versions {new.valid}: remove the field or fix the range"
            violation("V-06", where, f"{what} {versions} contains no valid version", advice)
        for struct, path in struct_paths(new).items():
            for field in struct.fields:
                if field.tag is not None and field.flexible is None and not new.flexible.covers(field.tagged):
                    # E-44 when a definition is read; a Message can also be made by code.
                    what = f"taggedVersions {field.tagged} is not within flexibleVersions {new.flexible}"
                    violation("V-07", f"{path}.{field.name}", what, "only flexible versions can have tagged fields")
        everywhere = self.released.all
        self.struct(old.struct, new.struct, everywhere, everywhere, self.offered, name)

    def valid_versions(self) -> None:
        """V-04, V-05, V-53."""
        old, new, name, violation = self.offered, self.new.valid, self.new.name, self.report.violation
        if not old:
            return
        if not new:
            what = f"{versions_are(old)} removed; no version remains"
            violation("V-04", name, what, "peers that use them cannot connect any more: this needs a KIP")
            return
        if new.highest < old.highest:
            lost = Versions(max(new.highest + 1, old.lowest), old.highest)
            violation("V-04", name, f"{versions_are(lost)} removed from the top", "keep released versions")
        if new.lowest > old.lowest:
            lost = Versions(old.lowest, min(new.lowest - 1, old.highest))
            advice = "dropping released versions needs a KIP; with one, --allow V-53"
            violation("V-53", name, f"{versions_are(lost)} dropped", advice)
        if new.lowest < self.old.valid.lowest:
            back = Versions(new.lowest, self.old.valid.lowest - 1)
            violation("V-05", name, f"{versions_are(back)} restored", f"start at {self.old.valid.lowest} as before")
        if self.new.latest_version_unstable and new.highest == old.highest:
            what = f"version {old.highest} is now unstable: brokers do not enable it by default"
            self.report.note("V-26", name, what)

    def flexible_versions(self) -> None:
        """V-03, V-42, V-47: flexible versions, and header versions, explicit or derived from them."""
        report, name = self.report, self.new.name
        was, now = self.fields.old_flexible, self.fields.new_flexible
        lost, gained = was & ~now, now & ~was
        what = f"flexibleVersions {self.old.flexible} becomes {self.new.flexible}"
        if lost:
            report.violation("V-03", name, f"{what}: {report.of(lost)} no longer flexible", FREEZE, lost)
        if gained:
            advice = "make a new version flexible instead"
            report.violation("V-42", name, f"{what}: {report.of(gained)} flexible now", advice, gained)
        if (self.old.kind, self.old.api_key) == (self.new.kind, self.new.api_key):
            same = self.released.all & ~lost & ~gained
            headers = 0
            for mask, version in self.released.split(same):
                if self.old.header_version(version) != self.new.header_version(version):
                    headers |= mask
            if headers:
                report.violation("V-47", name, f"{report.of(headers)} under another header version", FREEZE, headers)

    # Structs

    def struct(self, old: Struct, new: Struct, here: int, filled: int, around: Versions, path: str) -> None:
        """Compare two structs.

        here: blocks that have both on the wire; filled: those in which a reader has one, from the wire or by default;
        around: the old one's released versions.
        """
        key = (old, new, here, filled, around)
        if key in self.done:
            return
        self.done.add(key)
        outer, self.report.scope = self.report.scope, (old, new)
        matched = self.matcher.match(old, new, here)
        inner: list[tuple[Struct, Struct, int, int, Versions, str]] = []
        self.tags(old, new, matched.pairs, matched.added, around, path)
        for a, b in matched.pairs:
            where = f"{path}.{b.name}"
            if not a.versions.intersect(around):  # in unstable versions at most, so it counts as new
                self.fields.added(b, here, matched.equal_blocks, where)
                continue
            if a.name != b.name:
                self.report.note("V-25", where, f"renamed from {a.name}; the bytes are the same")
            both = self.fields.changed(a, b, here, filled, matched.equal_blocks, where)
            if a.struct is not None and b.struct is not None and a.is_array == b.is_array:
                by_default = filled if STRUCT_DEFAULTS in (a.default, b.default) else both
                inner.append((a.struct, b.struct, both, by_default, around.intersect(a.versions), where))
        for field in matched.removed:
            self.fields.removed(field, here, matched.equal_blocks, f"{path}.{field.name}")
        for field in matched.added:
            self.fields.added(field, here, matched.equal_blocks, f"{path}.{field.name}")
        for a, b in matched.moved:
            where = f"{path}.{b.name}"
            if a.name != b.name:
                self.report.note("V-25", where, f"renamed from {a.name}; the bytes are the same")
            sent = self.released.positional(a) & self.released.positional(b) & matched.equal_blocks
            self.fields.default(a, b, sent, filled, where)
        self.order(matched.pairs, new, here & ~matched.equal_blocks, path)
        for arguments in inner:
            self.struct(*arguments)
        self.report.scope = outer

    def order(self, pairs: Sequence[FieldPair], new: Struct, here: int, path: str) -> None:
        """V-48: the order of fields that are both positional in a released version."""
        places = {field.name: i for i, field in enumerate(new.fields)}
        beside: list[tuple[int, int, Field]] = []
        for a, b in pairs:
            mask = self.released.positional(a) & self.released.positional(b) & here
            if mask:
                beside.append((places[b.name], mask, b))
        kept = set(longest_increasing([place for place, _, _ in beside]))
        for i, (place, mask, field) in enumerate(beside):
            if i in kept:
                continue
            for j, (other, other_mask, neighbour) in enumerate(beside):
                crossed = mask & other_mask
                if crossed and (i < j) != (place < other):
                    what = f"moved {'after' if place > other else 'before'} {neighbour.name}"
                    advice = "move it back; existing fields keep their order, new ones may be anywhere"
                    self.report.violation("V-48", f"{path}.{field.name}", what, advice, crossed)
                    break

    # Tags

    def tags(
        self, old: Struct, new: Struct, pairs: Sequence[FieldPair], added: Sequence[Field], around: Versions, path: str
    ) -> None:
        """V-43 and V-44: reused and changed tags."""
        owners = {f.tag: f for f in old.fields if f.tag is not None and f.tagged.intersect(around)}
        for a, b in (*pairs, *((None, field) for field in added)):
            if b.tag is None:
                continue
            where, owner = f"{path}.{b.name}", owners.get(b.tag)
            if owner is not None and owner is a:
                continue
            use = TagUse.of(owner, "the old definition") if owner is not None else self.former_use(old, new, b)
            if use is not None:
                what = f"tag {b.tag} was used by {use.name} ({use.type}) in {use.source}"
                advice = "use a tag that was never used"
                self.report.violation("V-43", where, what, advice, self.released.tagged(b))
            elif a is not None and a.tag is not None and owners.get(a.tag) is a:
                what, advice = f"tag {a.tag} becomes {b.tag}", f"keep {a.tag}: peers identify the field by it"
                self.report.violation("V-44", where, what, advice, self.released.tagged(a) & self.released.tagged(b))

    def former_use(self, old: Struct, new: Struct, field: Field) -> TagUse | None:
        """Return another use of the field's tag in an older definition."""
        assert field.tag is not None
        structs = ("",) if old is self.old.struct else (old.name, new.name)
        uses = self.used_tags.uses(structs, field.tag)
        return next((use for use in uses if use != TagUse.of(field)), None)


def _key(message: Message) -> str:
    return "absent" if message.api_key is None else str(message.api_key)


def _dead_ranges(new: Message, old: Message) -> Iterator[tuple[str, str, Versions]]:
    """Yield (path, attribute, range) of the ranges without a valid version, except for those that old has, too.

    A message without valid versions has been removed and is ignored. A field's flexibleVersions may be `none` (T-22).
    """
    if not new.valid:
        return
    known = {(where, what) for where, what, _ in _dead(old)}
    for where, what, versions in _dead(new):
        if (where, what) not in known:
            yield where, what, versions


def _dead(message: Message) -> Iterator[tuple[str, str, Versions]]:
    for struct, path in struct_paths(message).items():
        for field in struct.fields:
            ranges = {
                "versions": field.versions,
                "nullableVersions": field.nullable or None,
                "taggedVersions": None if field.tag is None else field.tagged,
                "flexibleVersions": field.flexible or None,
            }
            for what, versions in ranges.items():
                if versions is not None and not message.valid.intersect(versions):
                    yield f"{path}.{field.name}", what, versions

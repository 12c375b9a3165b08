"""Changes of one field: its place on the wire, type, encoding, nullability and default.

All rules compare the bytes of released versions. The type and the default, which apply to all versions, must not change
even if the definitions share no version.
"""

from __future__ import annotations

from typing import Final

from kwire.schema.evolution.report import Report
from kwire.schema.model import ENCODABLE, STRUCT_DEFAULTS, Default, Field, Message
from kwire.schema.versions import MAX_VERSION, Versions
from kwire.schema.wire_forms import WireForms

FREEZE: Final = "make the change in a new version"
FIELDS_OF_PLAIN_STRUCTS: Final = "keep their bytes, because a struct without null and tags is just its fields"


class FieldChanges:
    """The rules for fields of two definitions."""

    def __init__(self, old: Message, new: Message, report: Report, forms: WireForms) -> None:
        self.old, self.new, self.report, self.released, self.forms = old, new, report, report.released, forms
        self.old_flexible = self.released.mask(old.flexible)
        self.new_flexible = self.released.mask(new.flexible)
        self.next_version = f"{old.valid.highest + 1}+"

    def removed(self, field: Field, here: int, same: int, where: str) -> None:
        """Check a released field that the new definition does not have.

        here: the blocks in which both structs are on the wire; same: those in which they are the same bytes.
        """
        positional, tagged = self.released.positional(field) & here, self.released.tagged(field) & here
        kept, positional = positional & same, positional & ~same
        if kept:
            what = f"removed without changing bytes: {self.report.ranges(kept)} {FIELDS_OF_PLAIN_STRUCTS}"
            self.report.note("V-23", where, what, mask=kept)
        if positional:
            what = f"removed, but {self.report.of(positional)} still valid"
            self.report.violation("V-23", where, what, f"keep it; {self.capped(field)}", positional)
        elif tagged:
            self.tag_removed(field, tagged, where)

    def added(self, field: Field, here: int, same: int, where: str) -> None:
        """Check a field that the old definition does not have; arguments as in `removed`."""
        positional, tagged = self.released.positional(field) & here, self.released.tagged(field) & here
        kept, positional = positional & same, positional & ~same
        if kept:
            what = f"added without changing bytes: {self.report.ranges(kept)} {FIELDS_OF_PLAIN_STRUCTS}"
            self.report.note("V-21", where, what, mask=kept)
        if positional:
            what = f"added to {self.report.ranges(positional)}"
            advice = f"add it in a new version, {self.next_version}, or make it a tagged field"
            self.report.violation("V-21", where, what, advice, positional)
        self.tag_added(field, tagged, where)

    def changed(self, a: Field, b: Field, here: int, filled: int, same: int, where: str) -> int:
        """Check a released field in both definitions. Returns the blocks in which both have it, at one position or tag.

        filled: the blocks in which a reader has the structs around it, from the wire or by default.
        """
        was, now = self.released.positional(a) & here, self.released.positional(b) & here
        was_tagged, now_tagged = self.released.tagged(a) & here, self.released.tagged(b) & here
        self.presence(a, b, was & ~now & ~now_tagged & ~same, now & ~was & ~was_tagged & ~same, where)
        if was & now_tagged:
            what = f"would become tagged in {self.report.ranges(was & now_tagged)}"
            advice = f"make it tagged from a new version on, {self.next_version}"
            self.report.violation("V-47", where, what, advice, was & now_tagged)
        if was_tagged & now:
            what = f"would no longer be tagged in {self.report.ranges(was_tagged & now)}"
            self.report.violation("V-44", where, what, FREEZE, was_tagged & now)
        if was_tagged & ~now & ~now_tagged:
            self.tag_removed(a, was_tagged & ~now & ~now_tagged, where)
        self.tag_added(b, now_tagged & ~was & ~was_tagged, where)
        positional, tagged = was & now, was_tagged & now_tagged
        comparable = self.type(a, b, positional, tagged, where)
        self.nullability(a, b, positional, tagged, where)
        self.compact_form(a, b, positional | tagged, where)
        if comparable:
            self.default(a, b, positional, filled, where)
        return positional | tagged

    def default(self, a: Field, b: Field, positional: int, filled: int, where: str) -> None:
        """V-50. positional: the blocks that always send the field, of those in which a reader has the struct.

        Bytes that become records, or the reverse, cannot keep their default; where it is always sent, V-51 notes it.
        """
        if same_default(a.default, b.default):
            return
        what = default_change(a, b)
        absent = filled & ~positional
        if not absent and a.type != b.type and "records" in (a.type, b.type):
            return
        if absent:
            advice = f"keep it: old and new peers would fill in different values in {self.report.ranges(absent)}"
        else:
            advice = "keep it: all released versions send it, but code that does not set it would send another value"
        self.report.violation("V-50", where, what, advice, absent)

    # Presence

    def presence(self, a: Field, b: Field, lost: int, gained: int, where: str) -> None:
        """V-12, V-13, V-47: positional in blocks that now lack it, or that lacked it."""
        what = f"versions {a.versions} becomes {b.versions}"
        start = ("V-13", "keep the lowest version")
        lowest = b.versions.lowest if b.versions else 0
        self.shifted(lost, lowest, where, f"{what}: %s would lack it", start, ("V-12", self.capped(a)))
        self.shifted(gained, a.versions.lowest, where, f"{what}: %s would have it", start, ("V-47", FREEZE))

    def shifted(
        self, mask: int, lowest: int, where: str, what: str, below: tuple[str, str], above: tuple[str, str]
    ) -> None:
        """Refuse the blocks of mask below and above a version, by a rule and its advice each; %s in what names them."""
        under = self.released.below(mask, lowest)
        for part, (rule, advice) in ((mask & ~under, above), (under, below)):
            if part:
                self.report.violation(rule, where, what % self.report.ranges(part), advice, part)

    def capped(self, field: Field) -> str:
        """Return the remedy for a removed field: cap its versions."""
        highest = max(self.old.valid.highest, field.versions.lowest)
        return f'a new version may omit it ("versions": "{Versions(field.versions.lowest, highest)}")'

    def tag_added(self, field: Field, tagged: int, where: str) -> None:
        """V-40, V-41: a tagged field is added to blocks that did not have it."""
        rigid, joined = tagged & ~self.old_flexible, tagged & self.old_flexible
        if rigid:
            what = f"tag {field.tag} added to {self.report.ranges(rigid)}, which are not flexible"
            self.report.violation("V-41", where, what, "only flexible versions can have tagged fields", rigid)
        if joined:
            what = f"tag {field.tag} added to {self.report.ranges(joined)}; old readers skip it"
            self.report.note("V-40", where, what, mask=joined)

    def tag_removed(self, field: Field, mask: int, where: str) -> None:
        """V-46: a tagged field is removed from blocks that had it."""
        what = f"tag {field.tag} of {field.name} removed from {self.report.ranges(mask)}"
        advice = "never use the tag for another field; --history checks that"
        self.report.note("V-46", where, what, advice, mask)

    # Type

    def type(self, a: Field, b: Field, positional: int, tagged: int, where: str) -> bool:
        """V-51, V-55, V-44 for tagged fields; returns whether the defaults can be compared."""
        both = positional | tagged
        what = f"type {a.type_text} becomes {b.type_text}"
        if a.struct is not None and b.struct is not None and a.is_array == b.is_array:
            if a.type != b.type:
                self.report.note("V-11", where, f"struct {a.type} renamed to {b.type}; the bytes are the same")
            return True
        if a.type_text == b.type_text:
            changed = self.released.encodings_differ(a, b, both)
            for rule, mask in (("V-55", changed & positional), ("V-44", changed & tagged)):
                if mask:
                    encodings = f"encoding {self.report.encodings(a, mask)} becomes {self.report.encodings(b, mask)}"
                    self.report.violation(rule, where, f"{encodings} in {self.report.ranges(mask)}", FREEZE, mask)
            return True
        if not both:
            self.report.note("V-51", where, f"{what}; no released version of both definitions sends it")
            return False
        rule = "V-44" if tagged and not positional else "V-51"
        if a.type in ENCODABLE and b.type in ENCODABLE and a.is_array == b.is_array:
            changed = self.released.encodings_differ(a, b, both)
            if not changed:
                self.report.note("V-55", where, f"{what} in memory; the bytes of released versions are the same")
                return True
            narrow = self.report.encodings(a, changed) or a.type
            advice = f"keep {a.type_text}, or give released versions the encoding {narrow}"
            self.report.violation(rule, where, what, advice, changed)
            return False
        differ = tagged | self.values_differ(a, b, positional)
        if not differ:
            comparable = a.is_array or (a.struct is None and b.struct is None)
            also = f", the {default_change(a, b)}" if comparable and not same_default(a.default, b.default) else ""
            self.report.note("V-51", where, f"{what}; the bytes of released versions are the same{also}")
            return comparable
        advice = f"add a field of type {b.type_text} in a new version instead"
        if a.is_array and b.is_array and not tagged and (a.struct is None) != (b.struct is None):
            boxed = a.type if a.struct is None else b.type
            if differ & (self.old_flexible | self.new_flexible):
                advice = "structs of flexible versions end with a tag section (T-23): add a new field instead"
            else:
                advice = f"in released versions the struct must have a single {boxed} that is never null"
        self.report.violation(rule, where, what, advice, differ)
        return False

    def values_differ(self, a: Field, b: Field, mask: int) -> int:
        """The blocks of mask in which two positional fields of different types are different bytes."""
        value = self.forms.value
        return sum(bit for bit, v in self.released.split(mask) if value(self.old, a, v) != value(self.new, b, v))

    # Null and form

    def nullability(self, a: Field, b: Field, positional: int, tagged: int, where: str) -> None:
        """V-14, V-15, V-47; V-44 if it is tagged."""
        what = f"nullableVersions {a.nullable} becomes {b.nullable}"
        was, now = self.released.mask(a.nullable), self.released.mask(b.nullable)
        start = ("V-15", FREEZE)
        lowest = b.nullable.lowest if now else 0
        text = f"{what}: %s would no longer accept null"
        self.shifted(positional & was & ~now, lowest, where, text, start, ("V-14", FREEZE))
        lowest = a.nullable.lowest if was else MAX_VERSION + 1
        self.shifted(positional & now & ~was, lowest, where, f"{what}: %s would accept null", start, ("V-47", FREEZE))
        changed = (was ^ now) & tagged
        if changed:
            self.report.violation("V-44", where, what, "the nullability of a tagged field cannot change", changed)

    def compact_form(self, a: Field, b: Field, both: int, where: str) -> None:
        """V-16, V-47: a field's own flexibleVersions; the message's are reported once, for the message."""
        was, now = self.released.flexible(self.old, a), self.released.flexible(self.new, b)
        own = both & (was ^ now) & ~(self.old_flexible ^ self.new_flexible)
        if own & was:
            self.report.violation(
                "V-16", where, f"{self.report.ranges(own & was)} would no longer be compact", FREEZE, own & was
            )
        if own & now:
            self.report.violation(
                "V-47", where, f"{self.report.ranges(own & now)} would become compact", FREEZE, own & now
            )


def same_default(a: Default, b: Default) -> bool:
    """Compare by value; stricter than Python for True == 1 and 0.0 == -0.0, more lenient for NaN."""
    return type(a) is type(b) and repr(a) == repr(b)


def default_change(a: Field, b: Field) -> str:
    """Describe a change of the default."""
    return f"default {_default(a.default)} becomes {_default(b.default)}"


def _default(value: Default) -> str:
    if value is None:
        return "null"
    if value is STRUCT_DEFAULTS:
        return "a struct of defaults"
    if value in ((), b""):
        return "empty"
    return str(value).lower() if isinstance(value, bool) else repr(value) if isinstance(value, str) else str(value)

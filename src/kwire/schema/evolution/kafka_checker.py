"""The rules of Kafka's own checker (MetadataSchemaCheckerTool of Kafka 4.0), for `--like-kafka`.

It knows metadata records, compares the text of two definitions field by field in their order, and stops at the first
difference. Here each struct stops at its first difference.
Unchanged from Kafka: nullable versions are compared crosswise, structs of both definitions share one registry (T-19),
and the request header is incompatible with itself (T-22). Where Kafka does not terminate (T-20), this reports a
violation. The order of arguments is always old, new (T-21: the git command of later releases reverses it).
Source: org.apache.kafka.message.checker.EvolutionVerifier, Unifier, FieldSpecPairIterator, FieldDomain.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kwire.schema.evolution.findings import Violation
from kwire.schema.model import Field, Message
from kwire.schema.names import class_name
from kwire.schema.rendering import render_default
from kwire.schema.versions import Versions


def kafka_violations(old: Message, new: Message, *, as_written: bool = False) -> list[Violation]:
    """List what Kafka's checker rejects in a change from old to new.

    as_written: compare defaults as the definitions write them, as Kafka does; otherwise by value: `0x10` as `16`, and
    the type's own default as absent.
    """
    checker = _Checker(old, new, as_written)
    checker.messages()
    return checker.violations


class _Checker:
    def __init__(self, old: Message, new: Message, as_written: bool) -> None:
        self.old, self.new, self.as_written = old, new, as_written
        self.violations: list[Violation] = []

    def violation(self, rule: str, where: str, message: str) -> None:
        self.violations.append(Violation(rule=rule, where=where, message=message))

    def messages(self) -> None:
        old, new, name = self.old, self.new, self.new.name
        if old.api_key != new.api_key:
            self.violation("V-01", name, f"apiKey {old.api_key} becomes {new.api_key}")
        if old.kind != new.kind:
            self.violation("V-02", name, f"a {old.kind} becomes a {new.kind}")
        if not new.flexible.covers(old.flexible):
            self.violation("V-03", name, f"flexibleVersions {old.flexible} is not within {new.flexible}")
        if new.valid.highest < old.valid.highest:
            self.violation("V-04", name, f"highest valid version {old.valid.highest} becomes {new.valid.highest}")
        if new.valid.lowest < old.valid.lowest:
            self.violation("V-05", name, f"lowest valid version {old.valid.lowest} becomes {new.valid.lowest}")
        for message in (old, new):
            for field in message.struct.fields:  # of common structs, too, only since a later release
                self.ranges(message, field, message.name)
        self.registry()
        if class_name(old.name) != class_name(new.name):
            self.violation("V-10", name, f"renamed from {old.name}")
            return
        self.structs(old.name, old.struct.fields, new.name, new.struct.fields, name)

    def ranges(self, message: Message, field: Field, path: str) -> None:
        """V-06."""
        where = f"{path}.{field.name}"
        for what, versions in (
            ("versions", field.versions),
            ("nullableVersions", field.nullable or None),
            ("taggedVersions", None if field.tag is None else field.tagged),
            ("flexibleVersions", field.flexible),
        ):
            if versions is not None and not message.valid.intersect(versions):
                self.violation("V-06", where, f"{what} {versions} contains none of the valid versions {message.valid}")
        for inner in _own_fields(field):
            self.ranges(message, inner, where)

    def registry(self) -> None:
        """T-19: the structs of both definitions share a registry."""
        names = {struct.name for struct in self.old.structs}
        for struct in self.new.structs:
            if struct.name in names:
                self.violation(
                    "T-19", self.new.name, f"struct {struct.name} was specified twice, once in each definition"
                )

    def structs(self, old_name: str, old: Sequence[Field], new_name: str, new: Sequence[Field], path: str) -> None:
        found_old, found_new = self.fields(self.old, old_name, old), self.fields(self.new, new_name, new)
        if found_old is None or found_new is None:
            name = class_name(old_name if found_old is None else new_name)
            self.violation("V-28", path, f"{name} has no fields here, and Kafka finds no struct of this name")
            return
        for message, fields in ((self.old, found_old), (self.new, found_new)):
            for field in fields:
                if field.flexible is None and not message.flexible.covers(field.tagged):
                    what = f"taggedVersions {field.tagged} is not within flexibleVersions {message.flexible}"
                    self.violation("V-07", f"{path}.{field.name}", what)
        for a, b in self.paired(found_old, found_new, path):
            if self.unlike(a, b, {f.name for f in found_old}, {f.name for f in found_new}, path):
                return

    def fields(self, message: Message, name: str, fields: Sequence[Field]) -> Sequence[Field] | None:
        """Return a struct's own fields, else the fields of the struct with this name; None if it does not exist."""
        return fields or next((struct.fields for struct in message.structs if struct.name == class_name(name)), None)

    def paired(self, old: Sequence[Field], new: Sequence[Field], path: str) -> Iterator[tuple[Field, Field]]:
        """Yield pairs of fields in versions of both messages, in order; report a field without a counterpart."""
        coming = iter(new)
        for a in old:
            in_old, in_new = self.domain(a)
            if not in_old:
                self.violation("V-06", f"{path}.{a.name}", f"versions {a.versions} are outside {self.old.valid}")
                return
            if not in_new:
                continue
            b = self.next_shared(coming, path)
            if isinstance(b, Violation):
                self.violations.append(b)
                return
            if b is None:
                what = "removed, but versions that have it are still valid; Kafka's checker does not terminate (T-20)"
                self.violation("V-23", f"{path}.{a.name}", what)
                return
            yield a, b
        b = self.next_shared(coming, path)
        if isinstance(b, Violation):
            self.violations.append(b)
        elif b is not None:
            self.added(b, path)

    def next_shared(self, coming: Iterator[Field], path: str) -> Field | Violation | None:
        """Return the next new field with versions of both messages, a Violation before it, or None at the end."""
        for b in coming:
            in_old, in_new = self.domain(b)
            if not in_new:
                what = f"versions {b.versions} are outside {self.new.valid}"
                return Violation(rule="V-06", where=f"{path}.{b.name}", message=what)
            if in_old:
                return b
        return None

    def domain(self, field: Field) -> tuple[bool, bool]:
        versions = field.versions
        return bool(self.old.valid.intersect(versions)), bool(self.new.valid.intersect(versions))

    def added(self, field: Field, path: str) -> None:
        rule, what = ("V-21", "added") if field.tag is None else ("V-27", f"added with tag {field.tag}")
        self.violation(rule, f"{path}.{field.name}", f"{what}, versions {field.versions} include old ones")

    def unlike(self, a: Field, b: Field, old: set[str], new: set[str], path: str) -> bool:
        """Compare two fields at one position, and their structs. Returns whether Kafka stops here."""
        reason = self.difference(a, b)
        if reason is not None:
            rule, what = reason
            if a.name != b.name:  # an earlier change moved the fields: report that change
                if a.name in new and b.name in old:
                    rule, what = "V-24", f"{b.name} is at the position of {a.name}: {what}"
                elif a.name not in new and b.name in old:
                    rule, what = "V-23", f"{a.name} removed, {b.name} is at its position: {what}"
                elif a.name in new:
                    self.added(b, path)
                    return True
            self.violation(rule, f"{path}.{b.name}", what)
            return True
        if a.struct is not None:
            # Kafka looks up a common struct by the type of an array's elements, but by the name of a single field.
            names = (a.type, b.type) if a.is_array else (a.name, b.name)
            before = len(self.violations)
            self.structs(names[0], _own_fields(a), names[1], _own_fields(b), f"{path}.{b.name}")
            return len(self.violations) > before
        return False

    def difference(self, a: Field, b: Field) -> tuple[str, str] | None:
        """Return the first rule that two fields at one position break, and the reason."""
        if a.type_text != b.type_text:
            return "V-11", f"type {a.type_text} becomes {b.type_text}"
        highest_old = min(a.versions.highest, self.old.valid.highest)
        highest_new = min(b.versions.highest, self.new.valid.highest)
        if highest_new < highest_old:
            return "V-12", f"highest version {highest_old} becomes {highest_new}"
        lowest_old, lowest_new = self.lowest(a.versions), self.lowest(b.versions)
        if lowest_old != lowest_new:
            return "V-13", f"lowest version {lowest_old} becomes {lowest_new}"
        # Crosswise (T-19): each side's highest version is compared with the other side's nullable versions.
        null_old = min(highest_old, b.nullable.highest)
        null_new = min(highest_new, a.nullable.highest)
        if null_new < null_old:
            return "V-14", f"highest nullable version, taken crosswise, {null_old} becomes {null_new}"
        lowest_old, lowest_new = self.lowest(a.nullable), self.lowest(b.nullable)
        if lowest_old != lowest_new:
            return "V-15", f"lowest nullable version {lowest_old} becomes {lowest_new}"
        flexible_old = self.old.flexible if a.flexible is None else a.flexible
        flexible_new = self.new.flexible if b.flexible is None else b.flexible
        own = a.flexible is not None or b.flexible is not None  # otherwise it was reported as V-03
        if own and not flexible_new.covers(flexible_old):
            return "V-16", f"flexible versions {flexible_old} are not within {flexible_new}"
        default_old, default_new = self.default(a), self.default(b)
        if default_old != default_new:
            return "V-17", f"default {default_old!r} becomes {default_new!r}"
        return None

    def lowest(self, versions: Versions) -> int:
        return max(versions.lowest, self.new.valid.lowest)

    def default(self, field: Field) -> str:
        return field.default_text if self.as_written else render_default(field) or ""


def _own_fields(field: Field) -> Sequence[Field]:
    """Return the fields written inside a field: the fields of an inline struct."""
    return () if field.struct is None or field.struct.is_common else field.struct.fields

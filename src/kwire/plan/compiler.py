"""Compile one version of a definition into the rows of a plan."""

from __future__ import annotations

from dataclasses import dataclass, field

from kwire.errors import UnsupportedVersion
from kwire.plan import rows as r
from kwire.plan.rows import Plan, Row
from kwire.schema.model import Field, Message, Struct
from kwire.schema.wire_size import smallest_element


def compile_message(message: Message, version: int) -> Plan:
    """Compile the body of a message. Raises UnsupportedVersion outside its valid versions."""
    compiler = _Compiler(Plan(message=message.name, version=version))
    compiler.body(message, version)
    return compiler.finish()


def compile_frame(header: Message, header_version: int, message: Message, version: int) -> Plan:
    """Compile a length prefix, a header and a body; the object of the plan is the pair (header, body).

    Raises UnsupportedVersion if either message does not have its version.
    """
    compiler = _Compiler(Plan(message=message.name, version=version))
    compiler.emit(r.LENGTH)
    compiler.emit(r.STRUCT, 0, 2)
    compiler.body(header, header_version)
    compiler.body(message, version)
    return compiler.finish()


@dataclass(slots=True)
class _Compiler:
    plan: Plan
    message: Message = field(init=False)
    version: int = field(init=False)
    flexible: bool = field(init=False)
    path: tuple[str, ...] = ()
    depth: int = 0
    # Adjacent fields, which become one row, or one run of rows, before any other row.
    run: list[tuple[int, Field]] = field(default_factory=list)
    absent_fields: list[Field | None] = field(default_factory=list)

    def body(self, message: Message, version: int) -> None:
        if version not in message.valid:
            raise UnsupportedVersion(f"{message.name}: no version {version!r}; versions are {message.valid}")
        self.message, self.version, self.flexible = message, version, version in message.flexible
        self.struct(message.struct)

    def finish(self) -> Plan:
        self.emit(r.END)
        return self.plan

    # Rows

    def emit(self, op: int, *operands: int, fields: tuple[Field, ...] = ()) -> int:
        """Append a row, after the rows of pending fields; return its number."""
        self.flush_run()
        self.flush_absent()
        return self.append(op, *operands, fields=fields)

    def append(self, op: int, *operands: int, fields: tuple[Field, ...] = ()) -> int:
        self.plan.rows.append(_row(op, *operands))
        self.plan.fields.append(fields)
        self.plan.paths.append(self.path)
        return len(self.plan.rows) - 1

    def next_row(self) -> int:
        self.flush_run()
        self.flush_absent()
        return len(self.plan.rows)

    def patch(self, number: int, operand: int, value: int) -> None:
        row = list(self.plan.rows[number])
        row[operand] = value
        self.plan.rows[number] = _row(*row)

    def flush_run(self) -> None:
        run, self.run = self.run, []
        for start in range(0, len(run), r.MAX_CODES):
            part = run[start : start + r.MAX_CODES]
            codes = sum(code << 4 * i for i, (code, _) in enumerate(part))
            fields = tuple(f for _, f in part)
            if part[0][0] in r.PACKED_NAMES:
                self.append(r.VARINTS, codes, len(part), fields=fields)
            else:
                self.append(r.FIXED, codes, len(part), sum(r.WIDTHS[code] for code, _ in part), fields=fields)

    def flush_absent(self, trailing: bool = False) -> int:
        """Emit the pending ABSENT rows as one run. Returns their number."""
        run, self.absent_fields = self.absent_fields, []
        for i, f in enumerate(run):
            rows, is_ignorable = len(run) if i == 0 else 0, f is not None and f.ignorable
            fields = () if f is None else (f,)
            self.append(r.ABSENT, 0, rows, int(trailing and i == 0), int(is_ignorable), fields=fields)
        return len(run)

    def push(self) -> None:
        self.depth += 1
        self.plan.depth = max(self.plan.depth, self.depth)

    def pop(self) -> None:
        self.depth -= 1

    # Structs and fields

    def struct(self, struct: Struct, owner: tuple[Field, ...] = ()) -> None:
        """Emit the rows of a struct: its positional fields in wire order, then the tag section or its absence.

        owner: the field with this value; empty for the message itself and for elements of arrays.
        """
        if self.version not in struct.versions:
            raise UnsupportedVersion(
                f"{self.message.name} version {self.version} uses {struct.name}, which has versions {struct.versions}"
            )
        fields = struct.class_fields
        tagged = tuple(f for f in fields if f.tag is not None)
        elsewhere = tuple(f for f in tagged if self.version in f.versions and self.version not in f.tagged)
        if elsewhere:
            self.emit(r.MARK)
            self.push()
        count = len(fields) + 1
        head = self.emit(r.STRUCT, int(self.flexible), count, fields=owner)
        self.plan.structs[head] = struct.name
        if self.flexible:
            self.push()
        written = []  # class indexes in the order in which a decoder writes them
        for f in struct.fields:
            index = fields.index(f)
            if f in elsewhere:
                self.emit(r.SEEK, index)
                self.value(f)
                self.emit(r.BACK)
            elif f.tag is not None:
                continue
            elif self.version in f.versions:
                self.value(f)
            else:
                self.absent(f)
            written.append(index)
        rest = [fields.index(f) for f in tagged if f not in elsewhere]
        if self.flexible:
            self.flush_run()
            self.tags(tagged, trim=not elsewhere)
            self.pop()
        else:
            for f in tagged:
                self.absent(f, elsewhere=f in elsewhere)
            self.flush_run()
            self.absent_fields.append(None)
            self.flush_absent(trailing=not elsewhere)
        if elsewhere:
            self.permute(written + rest + [count - 1])
            self.pop()

    def permute(self, written: list[int]) -> None:
        """Emit PERMUTE. written: the class indexes in the order in which the walker reads the values."""
        self.plan.orders[self.emit(r.PERMUTE)] = tuple(written.index(i) for i in range(len(written)))

    def absent(self, f: Field, elsewhere: bool = False) -> None:
        self.flush_run()
        if elsewhere:
            self.emit(r.SKIP, fields=(f,))
            return
        self.absent_fields.append(f)

    def value(self, f: Field) -> None:
        flags = r.COMPACT if f.is_flexible(self.message, self.version) else 0
        flags |= r.MAY_BE_NULL if self.version in f.nullable else 0
        if f.is_array:
            self.array(f, flags)
        elif f.struct is not None:
            self.nested(f, tagged=self.version in f.tagged)
        elif f.type == "string":
            self.emit(r.STRING, flags, fields=(f,))
        elif f.type in ("bytes", "records"):
            self.emit(r.BYTES, flags, fields=(f,))
        else:
            self.flush_absent()
            code = self.code(f)
            if self.run and (self.run[-1][0] in r.PACKED_NAMES) != (code in r.PACKED_NAMES):
                self.flush_run()
            self.run.append((code, f))

    def array(self, f: Field, flags: int) -> None:
        if f.struct is None and f.type not in ("string", "bytes", "records"):
            code = self.code(f)
            if code in r.PACKED_NAMES:
                self.emit(r.VARLIST, flags, code, fields=(f,))
            else:
                self.emit(r.LIST, flags, code, r.WIDTHS[code], fields=(f,))
            return
        least = smallest_element(self.message, f, self.version)
        self.plan.has_empty_elements |= least == 0
        head = self.emit(r.ARRAY, flags, 0, max(1, least), fields=(f,))
        self.push()
        outer, self.path = self.path, (*self.path, f"{f.attr}[]")
        body = self.next_row()
        if f.struct is not None:
            self.struct(f.struct)
        else:
            self.emit(r.STRING if f.type == "string" else r.BYTES, flags & r.COMPACT, fields=(f,))
        self.emit(r.NEXT, body)
        self.patch(head, 2, self.next_row())
        self.path = outer
        self.pop()

    def nested(self, f: Field, tagged: bool) -> None:
        assert f.struct is not None
        nullable = self.version in f.nullable
        head = self.emit(r.NULLABLE, int(tagged), fields=(f,)) if nullable else -1
        self.next_row()  # pending fields belong to the enclosing struct
        outer, self.path = self.path, (*self.path, f.attr)
        self.struct(f.struct, (f,))
        self.path = outer
        if nullable:
            self.patch(head, 2, self.next_row())

    def tags(self, tagged: tuple[Field, ...], trim: bool) -> None:
        """Emit TAGS, TAG_STEP, an ENTRY per field tagged in any version, and the rows of those tagged in this one."""
        trailing = self.flush_absent(trailing=trim)
        at = self.emit(r.TAGS, len(tagged), 0, trailing if trim else -1)
        step = self.append(r.TAG_STEP, len(tagged))
        entries = []
        for f in tagged:
            assert f.tag is not None
            state = r.LIVE if self.version in f.tagged else r.ELSEWHERE if self.version in f.versions else r.LACKING
            entries.append(self.append(r.ENTRY, f.tag, state, 0, int(f.ignorable), fields=(f,)))
        for f, entry in zip(tagged, entries, strict=True):
            if self.version in f.tagged:
                self.patch(entry, 3, self.next_row())
                self.value(f)
                self.emit(r.TAG_END, step, fields=(f,))
        end = self.next_row()
        self.patch(at, 2, end)
        self.patch(step, 2, end)

    # Facts about fields

    def code(self, f: Field) -> int:
        """Return the code of a number, or of those in a list: of its encoding in this version, else of its type."""
        encoding = f.encoding(self.version)
        if encoding is None:
            return r.CODES[f.type]
        return r.PACKED[encoding] if encoding in r.PACKED else r.FIXED_ENCODINGS[encoding]


def _row(*words: int) -> Row:
    a, b, c, d, e, f, g, h = (*words, *[0] * (len(r.ROW) - len(words)))
    return a, b, c, d, e, f, g, h

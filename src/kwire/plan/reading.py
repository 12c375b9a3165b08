"""The decoder of the walker: a Python function for each row of a plan.

    step(buf, pos, end, values) -> pos      reads at pos, appends what it read to values, returns the position after it

Values are nested lists in class order, without trailing defaults, as in the kernel; `msgspec.convert` creates the
objects. Lengths are checked against `end` before anything is sliced or looped over.

Tests compare the kernel with it. It raises the errors for input that the kernel rejects (a DecodeError collects its
path while it propagates through arrays and structs), annotates, and serves processes without a kernel.

`lenient` accepts what Kafka's generated readers accept and the protocol forbids:

    T-11    a compact length from 2**31 + 1 up is null
    T-13    malformed UTF-8 becomes replacement characters    W-50    the stated size of a known tagged field is ignored
    W-51    tags in any order, of up to 32 bits; of equal known tags the last one counts, unknown ones are all kept

Arrays and tag sections have limits in both modes, as in Kafka since 4.4. Before, a count of tagged fields from 2**31 up
was none (W-48), which Kafka 4.4 rejects as well.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any
from uuid import UUID

import msgspec

from kwire.errors import DecodeError, Malformed, Truncated, counted
from kwire.plan import rows as r
from kwire.plan.notes import Recorder
from kwire.plan.rows import Plan
from kwire.wire.integer_encoding import ENCODINGS
from kwire.wire.lengths import read_compact_length, read_length
from kwire.wire.varint import read_unsigned_varint

Buffer = bytes | memoryview
Values = list[Any]
"""Values of one struct in class order."""
Step = Callable[[Buffer, int, int, Values], int]

VIEW = struct.Struct(">qq")
"""Placeholder for bytes that will become a view of the input: position and size."""
_unpack_int32 = struct.Struct(">i").unpack_from
_unpack = msgspec.msgpack.decode


class Reader:
    """Reads one version of one message, or frame.

    lenient: see above. views: bytes become VIEW placeholders. recorder: receives a note for every byte range.
    """

    def __init__(
        self, plan: Plan, *, lenient: bool = False, views: bool = False, recorder: Recorder | None = None
    ) -> None:
        self.plan, self.lenient, self.views, self.recorder = plan, lenient, views, recorder
        self.framed = plan.rows[0][0] == r.LENGTH
        self._makers: dict[int, Callable[[int], Step]] = {
            r.FIXED: self._fixed,
            r.VARINTS: self._varints,
            r.STRING: self._string,
            r.BYTES: self._bytes,
            r.LIST: self._list,
            r.VARLIST: self._varlist,
            r.ARRAY: self._array,
            r.NULLABLE: self._nullable,
            r.ABSENT: self._absent,
            r.TAGS: self._tags,
        }
        self.root, _ = self._value(int(self.framed))

    def read(self, buf: Buffer, pos: int, partial: bool = False, allow_trailing: bool = False) -> tuple[object, int]:
        """Decode a message: (values in class order, position after them). partial: more bytes may follow.

        allow_trailing: ignore bytes between the end of the message and the end of buf, or of the frame.
        Raises DecodeError with the position in buf and the path of the field.
        """
        last = len(buf)
        if not 0 <= pos <= last:
            raise Truncated(f"starts at byte {pos} of {last}", pos)
        end = last
        if self.framed:
            size, start = self._frame_length(buf, pos, end)
            pos, end = start, start + size
        values: Values = []
        pos = self.root(buf, pos, end, values)
        if allow_trailing:
            pos = end
        if pos != end and (self.framed or not partial):
            raise Malformed(f"{counted(end - pos, 'byte')} remaining after the message", pos)
        if pos != last and not partial:
            raise Malformed(f"{counted(last - pos, 'byte')} remaining after the frame", pos)
        return values[0], pos

    def _frame_length(self, buf: Buffer, pos: int, end: int) -> tuple[int, int]:
        if end - pos < 4:
            raise Truncated(f"frame length of 4 bytes, {end - pos} left", pos)
        size, start = _unpack_int32(buf, pos)[0], pos + 4
        if size < 0:
            raise Malformed(f"frame of {counted(size, 'byte')}", pos)
        if self.recorder:
            self.recorder.note(pos, start, "frame length", size)
        if size > end - start:
            raise Truncated(f"frame of {counted(size, 'byte')}, {end - start} left", pos)
        return size, start

    # From rows to steps: each method returns a step; `_value` also the number of the row behind what it used.

    def _value(self, number: int) -> tuple[Step, int]:
        row = self.plan.rows[number]
        if row[0] == r.STRUCT:
            return self._struct(number)
        if row[0] == r.MARK:
            return self._permuted(number)
        after = number + row[2] if row[0] == r.ABSENT else self.plan.row_after(number)
        return self._makers[row[0]](number), after

    def _struct(self, number: int) -> tuple[Step, int]:
        rows, recorder = self.plan.rows, self.recorder
        name = self.plan.attribute(number)
        steps: list[Step] = []
        left = rows[number][2]
        number += 1
        while left:
            while rows[number][0] in (r.SEEK, r.BACK, r.SKIP):  # for writers
                number += 1
            left -= values_of(rows, number)
            step, number = self._value(number)
            steps.append(step)

        def read(buf: Buffer, pos: int, end: int, values: Values) -> int:
            mine: Values = []
            for step in steps:
                pos = step(buf, pos, end, mine)
            values.append(mine)
            return pos

        if not name:
            return read, number

        def read_named(buf: Buffer, pos: int, end: int, values: Values) -> int:
            if recorder:
                recorder.enter(name)
            try:
                pos = read(buf, pos, end, values)
            except DecodeError as error:
                raise under(error, name)  # noqa: B904  # the same error, with more of its path
            if recorder:
                recorder.leave()
            return pos

        return read_named, number

    def _permuted(self, number: int) -> tuple[Step, int]:
        """Read a struct with fields that are tagged in other versions, and put its values into class order."""
        read_struct, number = self._value(number + 1)
        order = self.plan.orders[number]

        def read(buf: Buffer, pos: int, end: int, values: Values) -> int:
            pos = read_struct(buf, pos, end, values)
            mine = values[-1]
            values[-1] = [mine[i] for i in order]
            return pos

        return read, number + 1

    def _fixed(self, number: int) -> Step:
        _, codes, count, size, *_ = self.plan.rows[number]
        kinds = [codes >> 4 * i & 15 for i in range(count)]
        names = [f.attr for f in self.plan.fields[number]]
        words = r.fixed_words(kinds, self.plan.fields[number])
        unpack = struct.Struct(">" + "".join(r.FORMATS[kind] for kind in kinds)).unpack_from
        recorder = self.recorder

        def read(buf: Buffer, pos: int, end: int, values: Values) -> int:
            if size > end - pos:
                explain(pos, end)
            values += unpack(buf, pos)
            if recorder:
                note(pos, values[-count:])
            return pos + size

        def explain(pos: int, end: int) -> None:
            for kind, word, name in zip(kinds, words, names, strict=True):
                if recorder and end - pos >= r.WIDTHS[kind]:
                    recorder.note(pos, pos + r.WIDTHS[kind], word, "...", name)
                if end - pos < r.WIDTHS[kind]:
                    what = f"{word} of {counted(r.WIDTHS[kind], 'byte')}, {end - pos} left"
                    raise Truncated(what, pos, (name,))
                pos += r.WIDTHS[kind]

        def note(pos: int, mine: Values) -> None:
            assert recorder
            for kind, word, name, value in zip(kinds, words, names, mine, strict=True):
                shown = UUID(bytes=value) if kind == r.UUID else value
                recorder.note(pos, pos + r.WIDTHS[kind], word, shown, name)
                pos += r.WIDTHS[kind]

        return read

    def _varints(self, number: int) -> Step:
        _, codes, count, *_ = self.plan.rows[number]
        encodings = [ENCODINGS[r.PACKED_NAMES[codes >> 4 * i & 15]] for i in range(count)]
        names = [f.attr for f in self.plan.fields[number]]
        recorder = self.recorder

        def read(buf: Buffer, pos: int, end: int, values: Values) -> int:
            for encoding, name in zip(encodings, names, strict=True):
                value, after = within(encoding.read, buf, pos, end, encoding.name, (name,))
                values.append(value)
                if recorder:
                    recorder.note(pos, after, encoding.name, value, name)
                pos = after
            return pos

        return read

    def _length(self, number: int, kind: str, wide: bool) -> Callable[[Buffer, int, int], tuple[int, int]]:
        """Make a reader of (length, position after it); -1 is null. kind: for errors; wide: int32, not int16."""
        flags, name, lenient = self.plan.rows[number][1], self.plan.attribute(number), self.lenient
        may_be_null = bool(flags & r.MAY_BE_NULL)
        here = (name,) if name else ()
        width = 4 if wide else 2

        def read_compact(buf: Buffer, pos: int, end: int) -> tuple[int, int]:
            if pos < end and 0 < buf[pos] < 0x80:
                return buf[pos] - 1, pos + 1
            n, after = within(read_compact_length, buf, pos, end, f"length of {kind}", here)
            if lenient and n >= 0x8000_0000:
                n = -1
            return (n, after) if n >= 0 else null(pos, after)

        def read_plain(buf: Buffer, pos: int, end: int) -> tuple[int, int]:
            if end - pos < width:
                raise Truncated(f"length of {kind}: {counted(width, 'byte')}, {end - pos} left", pos, here)
            n, after = read_length(buf, pos, width)
            return (n, after) if n >= 0 else null(pos, after)

        def null(pos: int, after: int) -> tuple[int, int]:
            if not may_be_null:
                raise Malformed(f"null {kind} where null is not allowed", pos, here)
            return -1, after

        return read_compact if flags & r.COMPACT else read_plain

    def _string(self, number: int) -> Step:
        length, name, recorder = self._length(number, "string", wide=False), self.plan.attribute(number), self.recorder
        here = (name,) if name else ()
        problems = "replace" if self.lenient else "strict"

        def read(buf: Buffer, pos: int, end: int, values: Values) -> int:
            start = pos
            n, pos = length(buf, pos, end)
            if n < 0:
                values.append(None)
            else:
                if n > end - pos:
                    raise Truncated(f"string of {counted(n, 'byte')}, {end - pos} left", start, here)
                if n > r.MAX_STRING_BYTES:
                    raise Malformed(
                        f"string of {counted(n, 'byte')} exceeds the maximum of {r.MAX_STRING_BYTES}", start, here
                    )
                try:
                    values.append(str(buf[pos : pos + n], "utf-8", problems))
                except UnicodeDecodeError as error:
                    raise Malformed(f"invalid UTF-8 ({error.reason})", pos + error.start, here) from None
                pos += n
            if recorder:
                recorder.note(start, pos, "string", values[-1], *here)
            return pos

        return read

    def _bytes(self, number: int) -> Step:
        fields = self.plan.fields[number]
        kind = fields[0].type
        length, name = self._length(number, kind, wide=True), self.plan.attribute(number)
        recorder, views = self.recorder, self.views
        here = (name,) if name else ()

        def read(buf: Buffer, pos: int, end: int, values: Values) -> int:
            start = pos
            n, pos = length(buf, pos, end)
            if n < 0:
                values.append(None)
            else:
                if n > end - pos:
                    raise Truncated(f"{kind} of {counted(n, 'byte')}, {end - pos} left", start, here)
                values.append(VIEW.pack(pos, n) if views else bytes(buf[pos : pos + n]))
                pos += n
            if recorder:
                recorder.note(start, pos, kind, values[-1], *here)
            return pos

        return read

    def _count(self, number: int) -> Callable[[Buffer, int, int], tuple[int, int]]:
        """Make a reader of (count of an array, position after it); -1 is null."""
        length, name, recorder = self._length(number, "array", wide=True), self.plan.attribute(number), self.recorder
        if recorder is None:
            return length
        note = recorder.note

        def read(buf: Buffer, pos: int, end: int) -> tuple[int, int]:
            n, after = length(buf, pos, end)
            note(pos, after, "count", None if n < 0 else n, name)
            return n, after

        return read

    def _list(self, number: int) -> Step:
        _, _, code, width, *_ = self.plan.rows[number]
        count, name, recorder = self._count(number), self.plan.attribute(number), self.recorder
        [word] = r.fixed_words([code], self.plan.fields[number])

        def read(buf: Buffer, pos: int, end: int, values: Values) -> int:
            start = pos
            n, pos = count(buf, pos, end)
            if n < 0:
                values.append(None)
                return pos
            if n * width > end - pos:
                raise Truncated(f"array of {n} {word} of {counted(width, 'byte')}, {end - pos} left", start, (name,))
            check_elements(n, start, name)
            mine = list(struct.unpack_from(f">{n}{r.FORMATS[code]}", buf, pos)) if code != r.UUID else [
                bytes(buf[pos + 16 * i : pos + 16 * i + 16]) for i in range(n)
            ]  # fmt: skip
            values.append(mine)
            if recorder:
                for i, value in enumerate(mine):
                    shown = UUID(bytes=value) if code == r.UUID else value
                    recorder.note(pos + i * width, pos + i * width + width, word, shown, name, i)
            return pos + n * width

        return read

    def _varlist(self, number: int) -> Step:
        encoding = ENCODINGS[r.PACKED_NAMES[self.plan.rows[number][2]]]
        count, name, recorder = self._count(number), self.plan.attribute(number), self.recorder

        def read(buf: Buffer, pos: int, end: int, values: Values) -> int:
            start = pos
            n, pos = count(buf, pos, end)
            if n < 0:
                values.append(None)
                return pos
            if n > end - pos:
                what = f"array of {n} {encoding.name} of at least 1 byte, {end - pos} left"
                raise Truncated(what, start, (name,))
            check_elements(n, start, name)
            mine: Values = []
            values.append(mine)
            for i in range(n):
                value, after = within(encoding.read, buf, pos, end, encoding.name, (name, i))
                mine.append(value)
                if recorder:
                    recorder.note(pos, after, encoding.name, value, name, i)
                pos = after
            return pos

        return read

    def _array(self, number: int) -> Step:
        least = self.plan.rows[number][3]
        count, name, recorder = self._count(number), self.plan.attribute(number), self.recorder
        element, _ = self._value(number + 1)

        def read(buf: Buffer, pos: int, end: int, values: Values) -> int:
            start = pos
            n, pos = count(buf, pos, end)
            if n < 0:
                values.append(None)
                return pos
            if n * least > end - pos:
                what = f"array of {counted(n, 'element')} of at least {counted(least, 'byte')}, {end - pos} left"
                raise Truncated(what, start, (name,))
            check_elements(n, start, name)
            mine: Values = []
            values.append(mine)
            try:
                for i in range(n):
                    if recorder:
                        recorder.enter(name, i)
                    pos = element(buf, pos, end, mine)
                    if recorder:
                        recorder.leave(2)
            except DecodeError as error:
                raise under(error, name, len(mine))  # noqa: B904  # the same error, with more of its path
            return pos

        return read

    def _nullable(self, number: int) -> Step:
        tagged, name, recorder = self.plan.rows[number][1], self.plan.attribute(number), self.recorder
        present, _ = self._value(number + 1)

        def read(buf: Buffer, pos: int, end: int, values: Values) -> int:
            start = pos
            if tagged:
                marker, pos = uvarint(buf, pos, end, "presence of a struct", (name,))
                is_null = marker == 0 or (self.lenient and marker >= 0x8000_0000)
            else:
                if pos >= end:
                    raise Truncated("presence of a struct: 1 byte, 0 left", pos, (name,))
                is_null = buf[pos] >= 0x80
                pos += 1
            if recorder:
                recorder.note(start, pos, "presence", None if is_null else "present", name)
            if is_null:
                values.append(None)
                return pos
            return present(buf, pos, end, values)

        return read

    def _absent(self, number: int) -> Step:
        _, _, rows, trailing, *_ = self.plan.rows[number]
        defaults = [] if trailing else [self._default(number + i) for i in range(rows)]

        def read(buf: Buffer, pos: int, end: int, values: Values) -> int:
            values += defaults
            return pos

        return read

    def _tags(self, number: int) -> Step:
        _, count, _, trimmed, *_ = self.plan.rows[number]
        prefix = [self._default(number - i) for i in range(trimmed, 0, -1)]
        defaults: Values = []
        known: dict[int, tuple[int, str, Step]] = {}
        refused: dict[int, str] = {}
        for entry in range(number + 2, number + 2 + count):
            _, tag, state, sub, *_ = self.plan.rows[entry]
            name = self.plan.attribute(entry)
            if state == r.LIVE:
                known[tag] = len(defaults), name, self._value(sub)[0]
            else:
                refused.setdefault(tag, name)
            if state != r.ELSEWHERE:
                defaults.append(self._default(entry))
        lenient, recorder = self.lenient, self.recorder

        def read(buf: Buffer, pos: int, end: int, values: Values) -> int:
            if pos < end and buf[pos] == 0 and trimmed >= 0:
                if recorder:
                    recorder.note(pos, pos + 1, "count of tagged fields", 0)
                return pos + 1
            start = pos
            n, pos = uvarint(buf, pos, end, "count of tagged fields", ())
            if recorder:
                recorder.note(start, pos, "count of tagged fields", n)
            if 2 * n > end - pos:
                raise Truncated(f"{counted(n, 'tagged field')} of at least 2 bytes, {end - pos} left", start)
            if n > r.MAX_TAGGED_FIELDS:
                raise Malformed(f"{n} tagged fields exceed the maximum of {r.MAX_TAGGED_FIELDS}", start)
            slots, unknown, previous = defaults.copy(), [], -1
            for _ in range(n):
                at = pos
                tag, pos = uvarint(buf, pos, end, "tag", ())
                size, pos = uvarint(buf, pos, end, f"size of tag {tag}", ())
                if tag <= previous and not lenient:
                    raise Malformed(f"tag {tag} {'twice' if tag == previous else f'after tag {previous}'}", at)
                if tag > r.MAX_TAG and not lenient:
                    raise Malformed(f"tag {tag} has more than 31 bits", at)
                if size > end - pos and not (lenient and tag in known):
                    raise Truncated(f"tag {tag} of {counted(size, 'byte')}, {end - pos} left", at)
                previous = tag
                if recorder:
                    recorder.note(at, pos, f"tag {tag}, size", size)
                if tag in known:
                    slot, name, step = known[tag]
                    limit = end if lenient else pos + size
                    holder: Values = []
                    after = step(buf, pos, limit, holder)
                    if after != pos + size and not lenient:
                        raise Malformed(
                            f"tag {tag} of {counted(size, 'byte')}, its value has {after - pos}", at, (name,)
                        )
                    slots[slot], pos = holder[0], after
                elif tag in refused:
                    raise Malformed(f"tag {tag} is not part of version {self.plan.version}", at, (refused[tag],))
                else:
                    unknown.append((tag, bytes(buf[pos : pos + size])))
                    if recorder:
                        recorder.note(
                            pos, pos + size, "unknown tagged field", unknown[-1][1], r.UNKNOWN, len(unknown) - 1
                        )
                    pos += size
            values += prefix
            values += slots
            values.append(unknown)
            return pos

        return read

    def _default(self, number: int) -> object:
        return _unpack(self.plan.default(number))


def values_of(rows: list[r.Row], number: int) -> int:
    """Return how many values of a struct the row, and those that belong to it, represent."""
    row = rows[number]
    if row[0] in (r.FIXED, r.VARINTS):
        return row[2]
    if row[0] == r.ABSENT:
        return row[2]
    if row[0] == r.TAGS:
        entries = rows[number + 2 : number + 2 + row[1]]
        return 1 + sum(entry[2] != r.ELSEWHERE for entry in entries)
    return 1


def within(
    read: Callable[[Buffer, int], tuple[int, int]],
    buf: Buffer,
    pos: int,
    end: int,
    what: str,
    path: tuple[str | int, ...],
) -> tuple[int, int]:
    """Read a number with a function of kwire.wire; it must end by `end`. what, path: for errors."""
    try:
        value, after = read(buf, pos)
    except DecodeError as error:
        raise type(error)(f"{what}: {error.what}", pos, path) from None
    if after > end:
        raise Truncated(f"{what}: unsigned varint ends early", pos, path)
    return value, after


def check_elements(n: int, start: int, name: str) -> None:
    """Raise Malformed for an array with too many elements. start: the position of its length. name: of the field."""
    if n > r.MAX_ELEMENTS:
        raise Malformed(f"array of {n} elements exceeds the maximum of {r.MAX_ELEMENTS}", start, (name,))


def uvarint(buf: Buffer, pos: int, end: int, what: str, path: tuple[str, ...]) -> tuple[int, int]:
    """Read an unsigned varint that ends by `end`."""
    return within(read_unsigned_varint, buf, pos, end, what, path)


def under(error: DecodeError, *steps: str | int) -> DecodeError:
    """Prepend steps to the path of the error."""
    error.path = (*steps, *error.path)
    error.args = (error.what, error.position, error.path)
    return error

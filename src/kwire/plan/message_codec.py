"""The codec of one version of one message: bytes to objects and back.

    bytes --messages.c--> objects --messages_writing.c--> bytes         compiled code
    bytes --walker--> nested lists --msgspec--> objects and back        no compiled code; errors; lenient; annotations

What compiled code rejects goes to the walker, which raises the error with its position or path, or accepts it: input if
it is lenient, objects of types that compiled code does not know, such as a set for an array.
A codec is thread-safe.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from kwire import native
from kwire.errors import DecodeError, EncodeError
from kwire.plan.compiler import compile_frame, compile_message
from kwire.plan.layout_check import fills_objects
from kwire.plan.layouts import Job, frame_count
from kwire.plan.notes import Annotation, Recorder
from kwire.plan.reading import Reader
from kwire.plan.rows import MAX_FRAMES, UNKNOWN, Plan
from kwire.plan.views import Patch, patch_for
from kwire.plan.writing import Writer
from kwire.schema.model import Message

__all__ = ["Codec", "codec", "frame_codec"]

Buffer = bytes | bytearray | memoryview
Decode = Callable[..., Any]
"""(data, views=False, lenient=False) -> object"""
DecodeFrom = Callable[..., tuple[Any, int]]
"""(data, pos, views=False, lenient=False) -> (object, position after it)"""
Encode = Callable[[object], bytes]


def codec(spec: Message, version: int, cls: type, *, kernels: bool | None = None) -> Codec:
    """Make the codec of one version of a message.

    cls: its class, with the classes of its other structs as attributes under their names; attributes in class order.
    kernels: False keeps this codec on the walker, True demands the kernels, None uses them where they are.
    Cost: 0.3 ms; the result is not cached.
    Raises UnsupportedVersion outside spec.valid, ImportError if there are no kernels and True demands them, TypeError
    for a class with other fields.
    """
    _check_classes(spec, cls)
    return Codec(compile_message(spec, version), (cls,), cls, patch_for(spec, version), kernels)


def frame_codec(
    header: Message,
    header_version: int,
    header_cls: type,
    spec: Message,
    version: int,
    cls: type,
    *,
    kernels: bool | None = None,
) -> Codec:
    """Make the codec of a whole frame: int32 length, header, body. Its objects are tuples (header, body).

    Header and body share one plan, which saves a call.
    Raises UnsupportedVersion when either message has no such version.
    """
    _check_classes(header, header_cls)
    _check_classes(spec, cls)
    patches = patch_for(header, header_version), patch_for(spec, version)

    def patch(pair: tuple[object, object], view: bytes | memoryview) -> None:
        for obj, each in zip(pair, patches, strict=True):
            if each is not None:
                each(obj, view)

    plan = compile_frame(header, header_version, spec, version)
    pair: Any = tuple[header_cls, cls]  # type: ignore[valid-type]  # made when it runs
    return Codec(plan, (header_cls, cls), pair, patch if any(patches) else None, kernels)


def _check_classes(spec: Message, message: type) -> None:
    """Raise TypeError unless the classes of a message have the fields of its definition, in class order."""
    for struct in (spec.struct, *spec.structs):
        cls: Any = message if struct is spec.struct else getattr(message, struct.name)
        expected = (*(field.attr for field in struct.class_fields), UNKNOWN)
        if cls.__struct_fields__ != expected:
            raise TypeError(
                f"class {cls.__name__} does not have the fields of its definition: expected {', '.join(expected)}, "
                f"found {', '.join(cls.__struct_fields__)}"
            )


class Codec:
    """Reads and writes one version of one message, or frame.

    decode(data, views=False, lenient=False, allow_trailing=False) -> object. All of data.
        views: bytes and records as memoryviews of data instead of copies. lenient: accept what Kafka accepts and the
        protocol forbids, as listed in `kwire.plan.reading`. allow_trailing: ignore bytes between the end
        of the message and the end of data, or of the frame. Raises DecodeError with position and path.
    decode_from(data, pos, views=False, lenient=False) -> (object, position after it). Raises the errors of decode.
    encode(obj) -> bytes. Raises EncodeError with the path of a value that does not fit this version.
    """

    __slots__ = ("_patch", "_readers", "_type", "_writer", "decode", "decode_from", "encode", "plan")

    decode: Decode
    decode_from: DecodeFrom
    encode: Encode

    def __init__(
        self, plan: Plan, classes: tuple[type, ...], type: type, patch: Patch | None, kernels: bool | None
    ) -> None:
        self.plan = plan
        self._type, self._patch = type, patch
        self._readers: dict[tuple[bool, bool], Reader] = {}
        self._writer: Writer | None = None
        if kernels and not fills_objects():
            raise ImportError(
                f"compiled code is missing on this platform, is disabled by {native.VARIABLE}=0, or cannot create "
                "objects of this msgspec"
            )
        is_deep = frame_count(plan) > MAX_FRAMES
        if kernels is False or is_deep or not fills_objects():
            self.decode, self.decode_from, self.encode = self._decode, self._decode_from, self._write
        else:
            job = Job(plan, classes)
            self.decode, self.decode_from = native.decoders(job.address, self._walk, job)
            self.encode = self._write
            if not plan.has_empty_elements:
                self.encode = native.encoder(job.address, self._write, job)

    def encoded_size(self, obj: object) -> int:
        """Return len(encode(obj)). Has the cost and the errors of encode."""
        return len(self.encode(obj))

    def annotate(self, data: Buffer, pos: int = 0, lenient: bool = False) -> Annotation:
        """Decode a message with a note for every byte range; an error ends the notes and is part of the result."""
        recorder = Recorder()
        value: object = None
        error = None
        try:
            tree, _ = Reader(self.plan, lenient=lenient, recorder=recorder).read(_contiguous(data), pos)
            value = msgspec.convert(tree, self._type)
        except DecodeError as fault:
            error = fault
        return Annotation(notes=tuple(recorder.notes), value=value, error=error)

    # The walker

    def _decode(self, data: Buffer, views: bool = False, lenient: bool = False, allow_trailing: bool = False) -> object:
        return self._walk(data, 0, views, lenient, False, allow_trailing)[0]

    def _decode_from(self, data: Buffer, pos: int, views: bool = False, lenient: bool = False) -> tuple[object, int]:
        return self._walk(data, pos, views, lenient, True)

    def _walk(
        self, data: Buffer, pos: int, views: bool, lenient: bool, partial: bool, allow_trailing: bool = False
    ) -> tuple[object, int]:
        key = views, lenient
        reader = self._readers.get(key)
        if reader is None:
            reader = self._readers[key] = Reader(self.plan, views=views, lenient=lenient)
        tree, pos = reader.read(_contiguous(data), pos, partial, allow_trailing)
        obj: object = msgspec.convert(tree, self._type)
        if views and self._patch is not None:
            self._patch(obj, memoryview(data).cast("B"))
        return obj, pos

    def _write(self, obj: object) -> bytes:
        if self._writer is None:
            self._writer = Writer(self.plan)
        try:
            data = self._writer.write(obj)
            if self.plan.has_empty_elements:
                self._check_readable(data)
            return data
        except EncodeError as error:
            raise EncodeError(f"{error.what} ({self.plan.message} version {self.plan.version})", error.path) from None

    def _check_readable(self, data: bytes) -> None:
        """Raise EncodeError for an array whose elements take no bytes, if readers refuse its count (W-45)."""
        try:
            self._decode(data)
        except DecodeError as error:
            what = "too many elements that take no bytes: readers refuse a count above the number of bytes after it"
            raise EncodeError(what, error.path) from None


def _contiguous(data: Buffer) -> bytes | memoryview:
    """Return data as a flat buffer that the walker can index, slice and unpack."""
    return data if isinstance(data, bytes) else memoryview(data).cast("B")

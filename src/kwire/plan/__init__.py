"""Message definitions as data that two interpreters run: bytes to objects, objects to bytes, bytes to columns.

    codec(spec, version, cls) -> Codec
        spec: kwire.schema.model.Message; version: int in spec.valid; cls: the message's class, with the classes of
        its other structs as attributes under their names. Not cached: keep what you get, a codec takes about 0.3 ms
        to build. Raises UnsupportedVersion outside spec.valid.
    frame_codec(header, header_version, header_cls, spec, version, cls) -> Codec
        length prefix, header and body in one plan; its object is the tuple (header, body)

    Codec.decode(data, views=False, lenient=False, allow_trailing=False) -> object      all of data
    Codec.decode_from(data, pos, views=False, lenient=False) -> (object, position after it)
    Codec.encode(obj) -> bytes
    Codec.encoded_size(obj) -> int                                        takes as long as encode
    Codec.annotate(data) -> Annotation                                    every byte range with its path, type and value

data is any contiguous bytes-like object. DecodeError carries position and path, EncodeError the path.
Importing this package does not import pyarrow.
"""

from kwire.plan.message_codec import Codec, codec, frame_codec
from kwire.plan.notes import Annotation, Note
from kwire.plan.rows import disassemble

__all__ = ["Annotation", "Codec", "Note", "codec", "disassemble", "frame_codec"]

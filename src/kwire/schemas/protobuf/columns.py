"""Arrow arrays of Protobuf values, read and written by kernels or in plain Python."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from kwire.errors import EncodeError
from kwire.schemas.column_plan import ROOT
from kwire.schemas.plan_decoder import PlanDecoder
from kwire.schemas.plan_encoder import PlanEncoder, bind
from kwire.schemas.protobuf.encode_plan import compile_encode_plan
from kwire.schemas.protobuf.model import Message
from kwire.schemas.protobuf.plan import compile_plan
from kwire.schemas.protobuf.reading import read_message
from kwire.schemas.protobuf.types import build_node
from kwire.schemas.protobuf.writing import write_message
from kwire.schemas.schema_codec import Decoded, Int32Array, Int64Array, encode_error, row_errors

__all__ = ["Decoder", "Encoder"]


class Decoder:
    """Decodes messages to the type of one message; messages of other schemas by the numbers of their fields."""

    def __init__(self, reader: Message, columns: Sequence[str] | None = None) -> None:
        """Compile the message. columns: the fields to decode, in this order. Raises InvalidSchema."""
        node = self._node = build_node(reader, None if columns is None else tuple(columns))
        self._decoder = PlanDecoder(compile_plan(node), "decode_protobuf", lambda data, _: read_message(node, data))

    @property
    def type(self) -> pa.DataType:
        """The type of the result."""
        return self._node.type

    def decode(self, values: pa.Array, skip: Int64Array, writer: Int32Array | None = None) -> Decoded:
        """Decode an array of binary; see SchemaDecoder. Raises OptionError if a column has more than 2 GiB."""
        array, errors = self._decoder.decode(values, skip, ROOT if writer is None else np.where(writer >= 0, ROOT, -1))
        return Decoded(array, row_errors(errors))


class Encoder:
    """Encodes structs as messages; fields are matched by name, and those that the array lacks are not sent."""

    def __init__(self, message: Message, given: pa.DataType) -> None:
        """Compile the message for arrays of a type. Raises InvalidSchema, EncodeError for a column without a field."""
        self._node = build_node(message)
        self._kind = _matched(given, self._node.type, ())
        self._plain = _plain(self._kind)
        self._plan = compile_encode_plan(self._node, self._plain)
        self._encoder = PlanEncoder(self._plan, ROOT, "encode_protobuf", self._write)

    def encode(self, values: pa.Array, prefix: bytes) -> Decoded:
        """Encode structs, each after the prefix; see SchemaEncoder.

        Raises EncodeError if a column cannot be converted to the schema's type, OptionError above 2 GiB of output.
        """
        try:
            values = values.cast(self._kind).cast(self._plain)  # times of other units first
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise EncodeError(str(error).lower()) from None
        bound = dict[int, pa.Array]()
        bind(values, self._plan.columns[ROOT], bound)
        array, errors = self._encoder.encode(values, bound, prefix)
        return Decoded(array, [encode_error(row, error) for row, error in errors])

    def _write(self, values: pa.Array) -> Iterator[bytes | EncodeError]:
        for each in values:
            try:
                yield write_message(self._node, each.as_py(maps_as_pydicts=None))
            except EncodeError as error:
                error.__traceback__ = error.__context__ = None  # and all that their frames refer to
                yield error
            except UnicodeDecodeError:
                yield EncodeError("a string is not UTF-8")


def _matched(given: pa.DataType, wanted: pa.DataType, path: tuple[str, ...]) -> pa.DataType:
    """Return the wanted type with the fields that are given only. Raises EncodeError for others."""
    if pa.types.is_struct(wanted) and pa.types.is_struct(given):
        names = {field.name: field.type for field in wanted}
        fields = list[pa.Field]()
        for field in given:
            if field.name not in names:
                raise EncodeError("the schema has no such field", (*path, field.name))
            fields.append(pa.field(field.name, _matched(field.type, names[field.name], (*path, field.name))))
        return pa.struct(fields)
    if pa.types.is_list(wanted) and pa.types.is_list(given):
        return pa.list_(pa.field("element", _matched(given.value_type, wanted.value_type, path)))
    if pa.types.is_map(wanted) and pa.types.is_map(given):
        return pa.map_(wanted.key_type, _matched(given.item_type, wanted.item_type, path))
    return wanted


def _plain(kind: pa.DataType) -> pa.DataType:
    """Return the type with times as numbers of microseconds."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _plain(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", _plain(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, _plain(kind.item_type))
    return pa.int64() if pa.types.is_timestamp(kind) or pa.types.is_duration(kind) else kind

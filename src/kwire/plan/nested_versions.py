"""Messages of several versions as one Arrow array of structs, which has the fields of all versions.

    VersionsReader     the caller gives the version of each message
    PrefixedReader     an int16 before each message is its version, as in the records of internal topics

Each version has its own `NestedReader`. Fields that a message's version lacks are null.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from kwire.errors import Malformed, Truncated, UnsupportedVersion
from kwire.plan.nested_columns import NestedReader, arrow_type, version_type
from kwire.plan.slices import Bytes, Int64Array
from kwire.schema.model import Field, Message, Struct

__all__ = ["PrefixedReader", "VersionsReader"]

PREFIX_BYTES = 2


class VersionsReader:
    """Reads all versions of one message into columns.

    header: definition of the header before each body; the messages are then whole frames. type: of the arrays.
    """

    def __init__(self, spec: Message, *, header: Message | None = None) -> None:
        self.spec, self.header = spec, header
        self.type = version_type(spec, None)
        self._readers: dict[int, NestedReader] = {}

    def read_bounds(
        self, data: Bytes, bounds: Int64Array, versions: Int64Array, *, permissive: bool = False
    ) -> pa.StructArray:
        """Return a struct for each message at [bounds[i, 0], bounds[i, 1]) of data; null for a start below 0.

        permissive: null also for unreadable messages and unknown versions. Otherwise the first of these in the lowest
        version raises DecodeError or UnsupportedVersion, with its row.
        """
        present = bounds[:, 0] >= 0
        pieces: list[pa.StructArray] = []
        places = np.full(len(bounds), -1, np.int64)
        for version in np.unique(versions[present]).tolist():
            mine = present & (versions == version)
            if version not in self.spec.valid:
                if permissive:
                    continue
                row = int(np.flatnonzero(mine)[0])
                raise UnsupportedVersion(
                    f"{self.spec.name}: no version {version}, in row {row}; versions are {self.spec.valid}"
                )
            kept = np.array(bounds, np.int64)
            kept[~mine, 0] = -1
            array = self._reader(version).read_bounds(data, kept, permissive=permissive)
            places[mine] = len(pieces) * len(bounds) + np.flatnonzero(mine)
            pieces.append(_widened(array, self.spec.struct, version))
        if not pieces:
            return pa.nulls(len(bounds), self.type)
        if len(pieces) == 1:
            return pieces[0]
        return pa.concat_arrays(pieces).take(pa.array(places, mask=places < 0))

    def _reader(self, version: int) -> NestedReader:
        if version not in self._readers:
            header = None if self.header is None else (self.header, self.spec.header_version(version))
            self._readers[version] = NestedReader(self.spec, version, header=header)
        return self._readers[version]


class PrefixedReader:
    """Reads messages after an int16; see `kwire.protocol.record_values`.

    version: the accepted version, or None for all versions, like VersionsReader. The int16 is the version; of a
    coordinator-key, it is the api key, and the version is 0.
    """

    def __init__(self, spec: Message, version: int | None) -> None:
        self.spec, self.version = spec, version
        self._number = spec.api_key if spec.kind == "coordinator-key" else version
        self._one = None if version is None else NestedReader(spec, version)
        self._all = VersionsReader(spec) if version is None else None

    def read_bounds(self, data: Bytes, bounds: Int64Array, *, permissive: bool = False) -> pa.StructArray:
        """Read like VersionsReader.read_bounds. Also raises Truncated, or Malformed for another number."""
        bounds = np.array(bounds, np.int64)
        present = bounds[:, 0] >= 0
        short = present & (bounds[:, 1] - bounds[:, 0] < PREFIX_BYTES)
        if short.any() and not permissive:
            row = int(np.flatnonzero(short)[0])
            left = int(bounds[row, 1] - bounds[row, 0])
            raise Truncated(f"version of 2 bytes, {left} left, in row {row} of {self.spec.name}", 0)
        bounds[short, 0] = -1
        present &= ~short
        starts = bounds[present, 0]
        numbers = np.full(len(bounds), -1, np.int64)
        numbers[present] = (data[starts].astype(np.int64) << 8 | data[starts + 1]).astype(np.int16)
        bounds[present, 0] += PREFIX_BYTES
        if self._number is not None and (other := present & (numbers != self._number)).any():
            if not permissive:
                row = int(np.flatnonzero(other)[0])
                raise Malformed(f"number {numbers[row]}, not {self._number}, in row {row} of {self.spec.name}", 0)
            bounds[other, 0] = -1
        if self._one is not None:
            return self._one.read_bounds(data, bounds, permissive=permissive)
        assert self._all is not None
        if self._number is not None:
            numbers[:] = 0
        return self._all.read_bounds(data, bounds, numbers, permissive=permissive)


def _widened(array: pa.StructArray, struct: Struct, version: int) -> pa.StructArray:
    """Return the structs of one version with the fields of all versions. array: without an offset."""
    fields = []
    for f in struct.fields:
        if version in f.versions:
            fields.append(_widened_field(array.field(f.attr), f, version))
        else:
            fields.append(pa.nulls(len(array), arrow_type(f, None)))
    kind = pa.struct([pa.field(f.attr, child.type) for f, child in zip(struct.fields, fields, strict=True)])
    return pa.Array.from_buffers(kind, len(array), array.buffers()[:1], children=fields)


def _widened_field(array: pa.Array, f: Field, version: int) -> pa.Array:
    if f.struct is None:
        return array
    if not f.is_array:
        return _widened(array, f.struct, version)
    elements = _widened(array.values, f.struct, version)
    return pa.Array.from_buffers(arrow_type(f, None), len(array), array.buffers()[:2], children=[elements])

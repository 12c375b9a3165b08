"""Partition transforms of Iceberg on Arrow arrays. Source: Iceberg's specification, "Partition Transforms".

Identity and times are computed here: PyIceberg copies their arrays into pyiceberg-core and back. Buckets and truncation
are left to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.partitioning import PartitionField
    from pyiceberg.types import IcebergType

__all__ = ["transformed"]

UNITS_A_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}


def transformed(field: PartitionField, source: IcebergType, values: pa.Array) -> pa.Array:
    """Return the partition value of each row, for PartitionFieldValue.

    source: type of the column. Raises PyIceberg's errors.
    """
    import pyarrow as pa
    from pyiceberg.transforms import (
        DayTransform,
        HourTransform,
        IdentityTransform,
        MonthTransform,
        VoidTransform,
        YearTransform,
    )

    transform: Any = field.transform
    match transform:
        case IdentityTransform():
            return values
        case VoidTransform():
            return pa.nulls(len(values), values.type)
        case YearTransform():
            return _calendar(values, "Y")
        case MonthTransform():
            return _calendar(values, "M")
        case DayTransform():
            return _since_epoch(values, "days")
        case HourTransform():
            return _since_epoch(values, "hours")
    return transform.pyarrow_transform(source)(values)


def _calendar(values: pa.Array, unit: str) -> pa.Array:
    """Return years or months since 1970. Arrow's year has 16 bits: it wraps around after 32767."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import types

    is_date = types.is_date(values.type)
    numbers = pc.fill_null(values.cast(pa.int32() if is_date else pa.int64()), 0).to_numpy(zero_copy_only=False)
    days = numbers.astype(np.int64) // (1 if is_date else UNITS_A_DAY[values.type.unit])
    periods = days.view("datetime64[D]").astype(f"datetime64[{unit}]").astype(np.int64)
    return pa.array(periods, mask=values.is_null().to_numpy(zero_copy_only=False))


def _since_epoch(values: pa.Array, unit: str) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    epoch = pa.scalar(0, values.type)
    return pc.days_between(epoch, values) if unit == "days" else pc.hours_between(epoch, values)

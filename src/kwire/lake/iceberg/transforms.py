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
            return _years(values)
        case MonthTransform():
            return _months(values)
        case DayTransform():
            return _since_epoch(values, "days")
        case HourTransform():
            return _since_epoch(values, "hours")
    return transform.pyarrow_transform(source)(values)


def _years(values: pa.Array) -> pa.Array:
    import pyarrow.compute as pc

    return pc.subtract(pc.year(values), 1970)


def _months(values: pa.Array) -> pa.Array:
    import pyarrow.compute as pc

    return pc.add(pc.multiply(_years(values), 12), pc.subtract(pc.month(values), 1))


def _since_epoch(values: pa.Array, unit: str) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    epoch = pa.scalar(0, values.type)
    return pc.days_between(epoch, values) if unit == "days" else pc.hours_between(epoch, values)

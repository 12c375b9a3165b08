"""How the types of rows and of a table compare."""

from __future__ import annotations

import pyarrow as pa
import pytest

from kwire.errors import TableError
from kwire.lake.evolution import compare_schemas


@pytest.mark.parametrize(
    ("rows", "table"),
    [
        (pa.decimal128(10, 4), pa.decimal128(12, 2)),  # would lose digits
        (pa.decimal128(12, 2), pa.decimal128(12, 4)),  # would not fit
    ],
    ids=str,
)
def test_decimals_of_another_scale_do_not_fit(rows: pa.DataType, table: pa.DataType) -> None:
    with pytest.raises(TableError, match=r"column 'price' is of type decimal\(12,.\) in the table"):
        compare_schemas(pa.schema({"price": rows}), pa.schema({"price": table}), "t", can_widen=lambda *_: True)
    fits = pa.schema({"price": pa.decimal128(table.precision - 1, table.scale)})
    assert not compare_schemas(fits, pa.schema({"price": table}), "t", can_widen=lambda *_: False)

"""Nested columns of mutated messages, compared with the walker: messages and columns end at guard pages.

Run in a separate process: `python -m tests.fuzz.guarded_columns INPUTS SEED` (test_nested_columns.py does).
"""

from __future__ import annotations

import ctypes
import random
import sys
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from tests.fuzz.encodings import drawn
from tests.fuzz.guarded_messages import Guarded
from tests.fuzz.messages import Target, mutate, targets

from kwire.errors import DecodeError
from kwire.plan.nested_columns import NestedReader


class GuardedReader(NestedReader):
    """Reads into columns that end at guard pages."""

    rooms: ClassVar[defaultdict[int, Guarded]] = defaultdict(lambda: Guarded(1 << 20))

    def _allocate(self, rows: Sequence[int], whole: bool) -> list[np.ndarray[Any, Any] | None]:
        return [
            array if array is None else self._guarded(i, array)
            for i, array in enumerate(super()._allocate(rows, whole))
        ]

    def _guarded(self, column: int, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        memory = (ctypes.c_uint8 * array.nbytes).from_address(self.rooms[column].holding(array.tobytes()))
        return np.frombuffer(memory, array.dtype, array.size).reshape(array.shape)


def run(inputs: int, seed: int) -> None:
    """Check that a message is null exactly if the walker rejects it, without access outside the buffers."""
    draw = random.Random(seed)
    source = Guarded(1 << 20)
    readers: dict[Target, GuardedReader] = {}
    all_targets = [*targets(("3.9.1",)), *(target for _ in range(60) for target in drawn(draw))]
    for _ in range(inputs):
        target = draw.choice(all_targets)
        message = mutate(draw.choice(target.wires), draw.choice(target.wires), draw)
        if target not in readers:
            readers[target] = GuardedReader(target.type.SPEC, target.version)
        address = source.holding(message)
        data = np.frombuffer((ctypes.c_uint8 * len(message)).from_address(address), np.uint8)
        column = readers[target].read_bounds(data, np.array([[0, len(message)]], np.int64), permissive=True)
        column.validate(full=True)
        refused = isinstance(target.walker_decode(message), DecodeError)
        assert column.null_count == int(refused), f"{target.name} {target.version}: {message.hex()}"
    print(f"guarded columns: {inputs} inputs, nothing outside was touched")


if __name__ == "__main__":
    run(int(sys.argv[1]), int(sys.argv[2]))

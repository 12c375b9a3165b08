"""Nested columns of mutated messages that end at a guard page, compared with the walker.

Run in a separate process: `python -m tests.fuzz.guarded_columns INPUTS SEED` (test_nested_columns.py does).
"""

from __future__ import annotations

import ctypes
import random
import sys

import numpy as np
from tests.fuzz.encodings import drawn
from tests.fuzz.guarded_messages import Guarded
from tests.fuzz.messages import Target, mutate, targets

from kwire.errors import DecodeError
from kwire.plan.nested_columns import NestedReader


def run(inputs: int, seed: int) -> None:
    """Check that a message is null exactly if the walker rejects it, without access outside the buffers."""
    draw = random.Random(seed)
    source = Guarded(1 << 20)
    readers: dict[Target, NestedReader] = {}
    all_targets = [*targets(("3.9.1",)), *(target for _ in range(60) for target in drawn(draw))]
    for _ in range(inputs):
        target = draw.choice(all_targets)
        message = mutate(draw.choice(target.wires), draw.choice(target.wires), draw)
        if target not in readers:
            readers[target] = NestedReader(target.type.SPEC, target.version)
        address = source.holding(message)
        data = np.frombuffer((ctypes.c_uint8 * len(message)).from_address(address), np.uint8)
        column = readers[target].read_bounds(data, np.array([[0, len(message)]], np.int64), permissive=True)
        column.validate(full=True)
        refused = isinstance(target.walker_decode(message), DecodeError)
        assert column.null_count == int(refused), f"{target.name} {target.version}: {message.hex()}"
    print(f"guarded columns: {inputs} inputs, nothing outside was touched")


if __name__ == "__main__":
    run(int(sys.argv[1]), int(sys.argv[2]))

"""Which interpreter a process uses, and how it changes over. Each case is a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from tests.waiting import HANG_S

HEAD = """
import sys
from kwire import plan
from kwire.plan import engine
from kwire.messages import MetadataRequest
wire = MetadataRequest().encode(version=9)
"""


def output(program: str, **environment: str) -> str:
    """What the program prints in a new process."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", HEAD + program],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_process_that_reads_little_never_imports_numba() -> None:
    program = "for _ in range(100): MetadataRequest.decode(wire, version=9)\n"
    program += "print('numba' in sys.modules, 'numpy' in sys.modules, 'pyarrow' in sys.modules, engine.kernels())"
    assert output(program) == "False False False None"


def test_a_few_large_messages_are_work_enough_for_the_kernels() -> None:
    program = """
from kwire.messages import MetadataResponse
topic = MetadataResponse.MetadataResponseTopic(partitions=[
    MetadataResponse.MetadataResponsePartition(partition_index=i, replica_nodes=[1, 2, 3], isr_nodes=[1, 2, 3])
    for i in range(480)
])
message = MetadataResponse(topics=[topic])
data = message.encode(version=9)
before = engine._thread
for _ in range(20):
    MetadataResponse.decode(data, version=9)
print(len(data) > 16_000, before, engine._thread is not None)
"""
    assert output(program) == "True None True"


def test_a_process_that_goes_on_reading_gets_the_kernels_without_a_word() -> None:
    program = """
codec = plan.codec(MetadataRequest.SPEC, 9, MetadataRequest)
decode, encode = codec.decode, codec.encode      # what somebody kept from before
expected = decode(wire)
while engine.kernels() is None:
    assert decode(wire) == expected and encode(expected) == wire
before = codec.decode
assert decode(wire) == expected
print(engine.kernels() is not None, codec.decode is not decode, codec.encode(expected) == encode(expected) == wire)
"""
    assert output(program) == "True True True"


def test_a_codec_switches_to_the_kernels_once() -> None:
    """A second switch would free the tables whose addresses the first one's functions have, perhaps amid a call."""
    program = """
codec = plan.codec(MetadataRequest.SPEC, 9, MetadataRequest)
decode, encode = codec.decode, codec.encode      # those of the walker, as another thread may still have them
engine.load()
decode(wire)
switched = codec.decode, codec.decode_from, codec.encode
encode(decode(wire))
print(switched == (codec.decode, codec.decode_from, codec.encode))
"""
    assert output(program) == "True"


def test_threads_read_while_the_kernels_come() -> None:
    program = """
import threading
expected = MetadataRequest.decode(wire, version=9)
wrong = []
def work():
    after = 0
    while after < 200:
        if MetadataRequest.decode(wire, version=9) != expected or expected.encode(version=9) != wire:
            wrong.append(1)
        after += engine.kernels() is not None
threads = [threading.Thread(target=work) for _ in range(2)]
for t in threads: t.start()
for t in threads: t.join()
print(engine.kernels() is not None, wrong)
"""
    assert output(program) == "True []"


def test_nobody_waits_for_kernels_that_are_loading() -> None:
    program = """
import threading
entered, leave = threading.Event(), threading.Event()
class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == "numba":
            entered.set()
            leave.wait()
sys.meta_path.insert(0, Slow())
thread = engine.load_in_background()
entered.wait()
assert engine.load_in_background() is thread
assert MetadataRequest.decode(wire, version=9) == MetadataRequest() and engine.kernels() is None
leave.set()
thread.join()
print(engine.kernels() is not None)
"""
    assert output(program) == "True"


def test_the_environment_keeps_the_kernels_off() -> None:
    program = """
for _ in range(2 * engine.CALLS_BEFORE_LOADING): MetadataRequest.decode(wire, version=9)
print(engine.load_in_background(), engine.kernels(), 'numba' in sys.modules)
try:
    engine.load()
except ImportError as error:
    print(error)
"""
    assert output(program, KWIRE_KERNEL="0") == "None None False\nKWIRE_KERNEL=0 keeps the kernels off"


def test_the_environment_loads_the_kernels_at_once() -> None:
    assert output("print(engine.kernels() is not None)", KWIRE_KERNEL="1") == "True"


def test_a_machine_without_numba_stays_with_the_walker() -> None:
    program = """
sys.modules["numba"] = None
thread = engine.load_in_background()
thread.join()
print(MetadataRequest.decode(wire, version=9) == MetadataRequest(), engine.kernels(), type(engine.problem()).__name__)
"""
    assert output(program) == "True None ModuleNotFoundError"


def test_a_process_may_end_while_the_kernels_are_loading() -> None:
    assert output("engine.load_in_background(); print('done')") == "done"


def test_warm_loads_everything() -> None:
    program = "from kwire.plan.warm import warm; warm(); print('kwire.plan.kernels.columns_entry' in sys.modules)"
    assert output(program) == "True"


@pytest.mark.parametrize("module", ["kwire.plan", "kwire.messages", "kwire.protocol"])
def test_imports_leave_the_heavy_libraries_alone(module: str) -> None:
    program = f"import {module}; print([m for m in ('numba', 'numpy', 'pyarrow') if m in sys.modules])"
    assert output(program) == "[]"

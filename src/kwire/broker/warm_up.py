"""When the compiled code is loaded: once a broker is used in earnest, in a thread beside it.

Loading takes about a second of CPU, and while it lasts every request waits for the interpreter. A test that sends a few
records is over by then, so the loading begins with what it is good for: codecs start it themselves after some hundred
calls (kwire.plan.engine), and WORTH_LOADING_BYTES of records do. Until then the broker serves without.
"""

from __future__ import annotations

import importlib
import logging
import threading
from typing import TYPE_CHECKING

from kwire.plan import engine
from kwire.records.section_scan import load_compiled_scan

if TYPE_CHECKING:
    from kwire.broker.node import Node

__all__ = ["load_when_used", "loaded"]

log = logging.getLogger("kwire.broker")

loaded = threading.Event()
"""Whether all of it is loaded in this process."""

LOOK_MS = 100
WORTH_LOADING_BYTES = 256 * 1024


def load_when_used(node: Node) -> None:
    """Look at the node now and then, and load everything when it is used."""

    def stored_bytes() -> int:
        return sum(each.size_bytes for each in node.log_manager.logs.values())

    def look() -> None:
        if engine.kernels() is not None or stored_bytes() - at_start > WORTH_LOADING_BYTES:
            threading.Thread(target=load, name="kwire broker kernels", daemon=True).start()
        else:
            node.timers.call_later(LOOK_MS, look)

    at_start = stored_bytes()
    look()


def load() -> None:
    """Load the codecs' kernels, the walk over produced records, and the cleaner."""
    codec = engine.load_in_background()
    if codec is None:  # kept off by the environment
        return
    codec.join()
    try:
        load_compiled_scan()
        importlib.import_module("kwire.log.cleaner")
        loaded.set()
    except Exception as error:  # whatever a broken numba or LLVM raises
        log.warning("the compiled code cannot be loaded, so logs are not compacted: %s", error)

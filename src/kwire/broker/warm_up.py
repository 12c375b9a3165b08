"""Loading of compiled code in a background thread, once a broker is used heavily.

Loading takes about a second of CPU time and blocks the interpreter, so a short test is faster without it. It starts
when a codec switches to its kernels, after some hundred calls (kwire.plan.engine), or when WORTH_LOADING_BYTES of
records are stored. Until then the broker uses plain Python.
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
"""Set when all compiled code is loaded in this process."""

CHECK_INTERVAL_MS = 100
WORTH_LOADING_BYTES = 256 * 1024


def load_when_used(node: Node) -> None:
    """Check the load of a node periodically; start loading when the node is used heavily."""

    def stored_bytes() -> int:
        return sum(each.size_bytes for each in node.log_manager.logs.values())

    def check() -> None:
        if engine.kernels() is not None or stored_bytes() - at_start > WORTH_LOADING_BYTES:
            threading.Thread(target=load, name="kwire broker kernels", daemon=True).start()
        else:
            node.timers.call_later(CHECK_INTERVAL_MS, check)

    at_start = stored_bytes()
    check()


def load() -> None:
    """Load the kernels of the codecs, of record validation and of the cleaner."""
    codec = engine.load_in_background()
    if codec is None:  # disabled by an environment variable
        return
    codec.join()
    try:
        load_compiled_scan()
        importlib.import_module("kwire.log.cleaner")
        loaded.set()
    except Exception as error:  # anything that a broken numba or LLVM installation raises
        log.warning("compiled code cannot be loaded, so logs are not compacted: %s", error)

"""Log compaction: keep the newest record of each key, remove the others.

cleaner           the cleaner: selects logs, runs passes, swaps segments in
cleaning_plan     cleanable range of a log, its dirty ratio, groups of segments to merge
cleaning_pass     one pass: read the dirty part, filter every segment; no files are written
record_filter     filter one chunk of a segment: bytes to bytes
retention         retention of batches; transactions and producers
offset_map        the newest offset of each key
rewriting         batches without some of their records
log_state         state of a log, open or read-only
sections          table of the batches of a chunk
layout            arrays that the kernels (native/cleaning.c) share
plain_cleaning    what they do, without compiled code
cleaner_stats     statistics of a pass

Names import their modules on first access, as numpy may be missing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from kwire.extras import needing

if TYPE_CHECKING:
    from kwire.log.cleaner.cleaner import Cleaner as Cleaner
    from kwire.log.cleaner.cleaner_stats import CleanerStats as CleanerStats
    from kwire.log.cleaner.cleaning_plan import CleaningPlan as CleaningPlan

_HOMES = {
    "Cleaner": "kwire.log.cleaner.cleaner",
    "CleanerStats": "kwire.log.cleaner.cleaner_stats",
    "CleaningPlan": "kwire.log.cleaner.cleaning_plan",
}

__all__ = [*_HOMES]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with needing("compaction of logs"):
        module = import_module(_HOMES[name])
    value = globals()[name] = getattr(module, name)
    return value

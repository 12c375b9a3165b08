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
"""

from kwire.log.cleaner.cleaner import Cleaner
from kwire.log.cleaner.cleaner_stats import CleanerStats
from kwire.log.cleaner.cleaning_plan import CleaningPlan

__all__ = ["Cleaner", "CleanerStats", "CleaningPlan"]

"""Log compaction: the newest record of each key stays, what nobody needs any more goes.

cleaner           the whole: chooses logs, runs passes, swaps segments in
cleaning_plan     what of a log can be cleaned, whether it is worth it, which segments become one
cleaning_pass     one pass: read the dirty part, filter every segment; no files are written
record_filter     a chunk of a segment in, what is left of it out
retention         which batches stay; transactions and producers
offset_map        the newest offset of each key
rewriting         batches without some of their records
log_state         what is known of a log, open or only stored
kernels, key_hash, sections                 compiled loops and what they work on
cleaner_stats     what a pass has done
warming           compiles the loops before they are needed
"""

from kwire.wire.kernel_cache import prepare_kernel_cache

prepare_kernel_cache()  # before the imports below import numba

from kwire.log.cleaner.cleaner import Cleaner  # noqa: E402
from kwire.log.cleaner.cleaner_stats import CleanerStats  # noqa: E402
from kwire.log.cleaner.cleaning_plan import CleaningPlan  # noqa: E402

__all__ = ["Cleaner", "CleanerStats", "CleaningPlan"]

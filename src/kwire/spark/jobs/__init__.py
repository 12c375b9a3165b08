"""Jobs on whole log directories, clusters and captures, for classic Spark and Spark Connect.

    verify, export, convert, compact, restore, translate_offsets, advise, pull, table        docs/jobs.md

Each takes a SparkSession, runs one task per partition (small partitions share tasks) and returns a result with a row
per partition. JobFailed names the failed partitions; it is raised when all others are complete.
"""

from kwire.errors import JobFailed
from kwire.spark.jobs.advising import Advice, advise
from kwire.spark.jobs.compacting import compact
from kwire.spark.jobs.converting import convert
from kwire.spark.jobs.exporting import export
from kwire.spark.jobs.pulling import Pulled, pull
from kwire.spark.jobs.restoring import Restored, restore
from kwire.spark.jobs.result import JobResult
from kwire.spark.jobs.runner import Progress
from kwire.spark.jobs.tabling import table
from kwire.spark.jobs.translating import translate_offsets
from kwire.spark.jobs.verifying import Verified, verify

__all__ = [
    "Advice",
    "JobFailed",
    "JobResult",
    "Progress",
    "Pulled",
    "Restored",
    "Verified",
    "advise",
    "compact",
    "convert",
    "export",
    "pull",
    "restore",
    "table",
    "translate_offsets",
    "verify",
]

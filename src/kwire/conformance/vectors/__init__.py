"""Bytes that Kafka's own classes wrote, with their values and verdicts, and the test of a codec against them.

    case       Case, a line of the data set
    data_set   the data set in this package: chapters, releases, reading and writing
    runner     a codec as a child process
    judging    the verdict on a codec for each case
    known      failures of a codec that are known
    batch_value   what kwire reads in batches, in the form of the data set

docs/conformance-vectors.md describes the format and the protocol of runners.
"""

from kwire.conformance.vectors.batch_value import batch_value
from kwire.conformance.vectors.case import Case
from kwire.conformance.vectors.data_set import CHAPTERS, cases, manifest, write_cases
from kwire.conformance.vectors.judging import judge, judge_all
from kwire.conformance.vectors.known import NOTHING_KNOWN, KnownFailures
from kwire.conformance.vectors.runner import Runner, RunnerFault

__all__ = [
    "CHAPTERS",
    "NOTHING_KNOWN",
    "Case",
    "KnownFailures",
    "Runner",
    "RunnerFault",
    "batch_value",
    "cases",
    "judge",
    "judge_all",
    "manifest",
    "write_cases",
]

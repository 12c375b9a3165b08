"""Kafka's protocol as a specification that runs: checks, their verdicts, and reports.

Check, Verdict           what is checked, and what came of it
Evidence, Result, Report bytes, the outcome of one check, the outcome of a run
compare                  reports side by side

The checks of a broker are in `kwire.conformance.broker`.
"""

from kwire.conformance.check import Check, Verdict
from kwire.conformance.comparison import compare
from kwire.conformance.report import Evidence, Report, Result

__all__ = ["Check", "Evidence", "Report", "Result", "Verdict", "compare"]

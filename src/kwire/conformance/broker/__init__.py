"""Checks of a broker over raw sockets, judged by what real Kafka of a release did.

all_checks   every check, by chapter
Session      a run against one cluster
check_access raise the reason if the settings do not let a run in
run_checks   run checks and judge them
Baseline     what real Kafka 2.8.2, 3.9.1 and 4.4.0 did in each check
"""

from kwire.conformance.broker.access import check_access
from kwire.conformance.broker.baseline import Baseline, read_baseline
from kwire.conformance.broker.bench import Session
from kwire.conformance.broker.chapters import all_checks
from kwire.conformance.broker.checks import BrokerCheck
from kwire.conformance.broker.runner import run_checks

__all__ = ["Baseline", "BrokerCheck", "Session", "all_checks", "check_access", "read_baseline", "run_checks"]

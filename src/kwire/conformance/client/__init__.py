"""Scenarios for clients: a program does a task against kwire's broker, which a script lets fail, move and lie.

CHAPTERS          chapters of scenarios
all_scenarios     every scenario
run_scenarios     run them with a program, and return a Report
"""

from kwire.conformance.client.chapters import CHAPTERS, all_scenarios
from kwire.conformance.client.runner import run_scenarios
from kwire.conformance.client.scenario import Scenario

__all__ = ["CHAPTERS", "Scenario", "all_scenarios", "run_scenarios"]

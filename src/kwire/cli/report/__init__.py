"""The HTML report: numbers from kwire.log.statistics in, one self-contained page out. Renders only."""

from kwire.cli.report.page import render_report

__all__ = ["render_report"]

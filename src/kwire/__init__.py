"""Kafka's wire protocol, record formats and logs, for Python and Spark."""

__version__ = "0.1.0"

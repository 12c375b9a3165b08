"""Tiered storage in the format of Aiven's plugin for Kafka, presented as a log directory."""

from kwire.storage.tiered.store import TieredStore

__all__ = ["TieredStore"]

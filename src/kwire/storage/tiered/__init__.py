"""Segments in tiered storage, as Aiven's plugin for Kafka stores them, presented as a log directory."""

from kwire.storage.tiered.store import TieredStore

__all__ = ["TieredStore"]
